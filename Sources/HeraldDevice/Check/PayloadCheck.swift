public import HeraldModel

/// What a service answers to a payload, and everything about it that is wrong or dubious.
public struct PayloadCheck: Sendable {
    /// The longest payload of the binary interface, in bytes ("Binary Provider API", command 2).
    public static let binaryBytes = 2048
    /// The longest payload that devices took before iOS 8, in bytes.
    public static let formerBytes = 256

    /// The longest payload that is looked into, in bytes; of a longer one only its size is told.
    public static let examinedBytes = 64 * 1024

    /// The kind of push that it was checked as.
    public let pushType: PushType
    /// The payload's size in bytes.
    public let size: Int
    /// The size without white space between its parts.
    public let compactSize: Int
    /// Why the HTTP/2 interface refuses it; nil where it is accepted.
    public let refusal: Rejection?
    /// The status of the binary interface's answer; 0 where it accepts, in silence.
    public let binaryStatus: UInt8
    /// What is wrong or dubious, in the order of the payload's rules.
    public let findings: [Finding]

    /// Checks a payload.
    /// - Parameters:
    ///   - payload: Its bytes as they would be sent.
    ///   - pushType: Its `apns-push-type`.
    ///   - bundle: The app that it is for, whose texts and sounds it names.
    ///   - now: The time, in UNIX seconds.
    public init(_ payload: [UInt8], pushType: PushType, bundle: AppBundle? = nil, now: Double) {
        self.pushType = pushType
        size = payload.count
        let compact = PayloadCheck.compactSize(of: payload)
        compactSize = compact
        var findings: [Finding] = []
        let outcome = payload.count > PayloadCheck.examinedBytes ? nil : PayloadReader.read(payload)
        if payload.isEmpty {
            refusal = .payloadEmpty
            findings.append(Finding(.error, "", "the payload is empty: the least is {\"aps\":{}}"))
        } else if payload.count > pushType.maximumPayloadBytes {
            refusal = .payloadTooLarge
            let limit = pushType.maximumPayloadBytes
            let hint = compact <= limit ? "; without white space it has \(compact)" : ""
            findings.append(
                Finding(.error, "", "\(payload.count) bytes are more than the \(limit) of \(pushType)\(hint)")
            )
        } else if case .object = outcome {
            refusal = nil
        } else {
            refusal = .badPayload
        }
        let isLong = payload.count > PayloadCheck.binaryBytes
        let binary: BinaryStatus = isLong ? .invalidPayloadSize : refusal?.binaryStatus ?? .noError
        binaryStatus = binary.rawValue
        switch outcome {
        case nil: break
        case .malformed(let position):
            if !payload.isEmpty { findings.append(PayloadCheck.malformation(of: payload, at: position)) }
        case .notAnObject:
            findings.append(Finding(.error, "", "the payload must be a JSON object: {\"aps\":{…}}"))
        case .object(let members, let repeatedKeys):
            for key in repeatedKeys {
                findings.append(
                    Finding(.warning, key, "the key \(key) comes twice in one dictionary: the last one counts")
                )
            }
            var rules = PayloadRules(pushType: pushType, bundle: bundle, now: now)
            rules.check(members)
            findings += rules.findings
        }
        self.findings = findings
    }

    /// Whether the HTTP/2 interface accepts it.
    public var isAccepted: Bool { refusal == nil }

    private static func malformation(of payload: [UInt8], at position: Int) -> Finding {
        // The scanner stops at the backslash of an escape that is none.
        if payload[min(position, payload.count)...].starts(with: Array("\\U".utf8)) {
            return Finding(.error, "", "\\U is not JSON: put the character itself into the text")
        }
        let before = payload[..<min(position, payload.count)]
        let line = before.count { $0 == UInt8(ascii: "\n") } + 1
        let column = before.count - (before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0) + 1
        let what =
            if position >= payload.count {
                "it ends too early"
            } else if payload[position] >= 0x80 {
                String(validating: payload, as: UTF8.self) == nil
                    ? "it is not UTF-8" : "a character that has no place there"
            } else {
                "a character that has no place there"
            }
        return Finding(.error, "", "the payload is not JSON: line \(line), byte \(column): \(what)")
    }

    /// The bytes that would be left without white space between the parts.
    private static func compactSize(of payload: [UInt8]) -> Int {
        var (count, isInString, isEscaped) = (0, false, false)
        for byte in payload {
            let isSpace = byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
            if isInString || !isSpace { count += 1 }
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
