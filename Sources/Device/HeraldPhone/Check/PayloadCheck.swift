import HeraldJSON
public import HeraldModel

/// Checks a payload: the service's answer, errors, and probable mistakes.
public struct PayloadCheck: Sendable {
    /// The longest payload of the binary interface, in bytes ("Binary Provider API", command 2).
    public static let binaryBytes = 2048
    /// The longest payload before iOS 8, in bytes.
    public static let formerBytes = 256

    /// The longest title that is read at a glance, in characters: two lines of a watch.
    public static let glanceCharacters = 40

    /// The longest payload whose content is checked, in bytes.
    public static let examinedBytes = 64 * 1024

    /// The push type.
    public let pushType: PushType
    /// The payload's size in bytes.
    public let size: Int
    /// The size without white space between tokens.
    public let compactSize: Int
    /// The refusal reason of the HTTP/2 interface; nil if it accepts.
    public let refusal: RefusalReason?
    /// The status of the binary interface; 0 if it accepts.
    public let binaryStatus: UInt8
    /// The reason why an app cannot schedule it as a local notification; nil if it can.
    public let localFault: String?
    /// The findings.
    public let findings: [Finding]

    /// Checks a payload as it would be sent; without a declared push type it is checked as an alert.
    ///
    /// `bundle` is the app, for its texts and sounds, and `now` the time in UNIX seconds.
    public init(_ payload: [UInt8], pushType declared: PushType?, bundle: AppBundle? = nil, now: Double) {
        let pushType = declared ?? .alert
        self.pushType = pushType
        size = payload.count
        let compact = PayloadCheck.compactSize(of: payload)
        compactSize = compact
        var findings: [Finding] = []
        let isExamined = payload.count <= PayloadCheck.examinedBytes
        let verdict = isExamined ? PayloadScanner.scan(payload) : nil
        let content = isExamined ? try? JSON.listingRepeatedNames(payload, rules: .payload) : nil
        if payload.isEmpty {
            refusal = .payloadEmpty
            findings.append(Finding(.error, "", "the payload is empty: the shortest is {\"aps\":{}}"))
        } else if payload.count > pushType.maximumPayloadBytes {
            refusal = .payloadTooLarge
            let limit = pushType.maximumPayloadBytes
            let hint = compact <= limit ? "; without white space it has \(compact)" : ""
            findings.append(
                Finding(.error, "", "\(payload.count) bytes are more than the \(limit) of \(pushType)\(hint)")
            )
        } else if case .object = verdict {
            refusal = nil
        } else {
            refusal = .badPayload
        }
        let isLong = payload.count > PayloadCheck.binaryBytes
        let binary: BinaryStatus = isLong ? .invalidPayloadSize : refusal?.binaryStatus ?? .noError
        binaryStatus = binary.rawValue
        localFault = LocalNotification.fault(of: content?.json, bytes: compact)
        switch verdict {
        case nil: break
        case .malformed(let position):
            if !payload.isEmpty { findings.append(PayloadCheck.malformation(of: payload, at: position)) }
        case .notAnObject:
            findings.append(Finding(.error, "", "the payload must be a JSON object: {\"aps\":{…}}"))
        case .object:
            guard let content, let members = content.json.members else {
                findings.append(Finding(.warning, "", Presentation.Reason.tooDeep.rawValue + ": nothing is shown"))
                break
            }
            for key in content.repeatedNames {
                findings.append(
                    Finding(
                        .warning,
                        key,
                        "the key \(key) appears more than once in one dictionary: the last one counts"
                    )
                )
            }
            var rules = PayloadRules(pushType: pushType, bundle: bundle, now: now)
            rules.isSilent = PayloadScanner.isSilent(payload)
            rules.isTypeDeclared = declared != nil
            rules.check(members)
            findings += rules.findings
        }
        self.findings = findings
    }

    /// Whether the HTTP/2 interface accepts it.
    public var isAccepted: Bool { refusal == nil }

    /// The error of a payload that is not JSON from a position on.
    package static func malformation(of payload: [UInt8], at position: Int) -> Finding {
        // The scanner stops at the backslash of an invalid escape.
        if payload[min(position, payload.count)...].starts(with: Array("\\U".utf8)) {
            return Finding(.error, "", "\\U is not JSON: write the character itself")
        }
        let before = payload[..<min(position, payload.count)]
        let line = before.count { $0 == UInt8(ascii: "\n") } + 1
        let column = before.count - (before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0) + 1
        let what =
            if position >= payload.count {
                "it ends too early"
            } else if payload[position] >= 0x80 {
                String(validating: payload, as: UTF8.self) == nil
                    ? "it is not UTF-8" : "a character that is not allowed here"
            } else if before.last(where: { !$0.isJSONSpace }) == UInt8(ascii: ","),
                let missing = [UInt8(ascii: "}"): "key", UInt8(ascii: "]"): "value"][payload[position]]
            {
                "\(Character(Unicode.Scalar(payload[position]))) after a comma: a \(missing) is missing"
            } else {
                "a character that is not allowed here"
            }
        return Finding(.error, "", "the payload is not JSON: line \(line), byte \(column): \(what)")
    }

    /// The size without white space between tokens.
    private static func compactSize(of payload: [UInt8]) -> Int {
        var (count, isInString, isEscaped) = (0, false, false)
        for byte in payload {
            if isInString || !byte.isJSONSpace { count += 1 }
            if isEscaped {
                isEscaped = false
            } else if isInString, byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isInString.toggle()
            }
        }
        return count
    }
}

extension UInt8 {
    fileprivate var isJSONSpace: Bool { self == 0x20 || self == 0x0A || self == 0x0D || self == 0x09 }
}
