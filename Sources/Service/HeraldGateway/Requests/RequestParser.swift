import HeraldModel

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Parses requests, with refusals in the observed order of APNs; pure.
///
/// The order: method and path, authentication (``ProviderAuthorization``), presence of the device token, fields, topic,
/// payload, and at last the device token itself (``Admission``).
enum RequestParser {
    /// The parsed fields of a request, except topic and token.
    struct Fields: Equatable {
        /// The provider's identifier.
        var id: NotificationID?
        var expiration = Expiration.unspecified
        var priority = Priority.immediate
        /// The declared push type; nil from older clients.
        var pushType: PushType?
        var collapseID: CollapseID?
    }

    /// The path up to the device token.
    private static let path: StaticString = "/3/device/"

    /// Checks method, path and duplicate fields.
    static func route(_ fields: RequestFields) -> Refusal? {
        guard fields.value(of: .method, is: "POST") else {
            return Refusal(.methodNotAllowed, "the only method is POST")
        }
        guard pathHasOneToken(fields) else {
            return Refusal(.badPath, "the path is /3/device/ and the device token in hexadecimal digits")
        }
        return duplicates(fields)
    }

    /// Checks for duplicate fields.
    static func duplicates(_ fields: RequestFields) -> Refusal? {
        fields.hasDuplicates
            ? Refusal(.duplicateHeaders, "an apns- field or authorization appears more than once") : nil
    }

    static func pathHasOneToken(_ fields: RequestFields) -> Bool {
        fields.withValue(of: .path) { value in
            let (prefix, rest) = (path.utf8CodeUnitCount, value.count - path.utf8CodeUnitCount)
            guard rest >= 0, let start = value.baseAddress, memcmp(start, path.utf8Start, prefix) == 0 else {
                return false
            }
            return memchr(start + prefix, Int32(UInt8(ascii: "/")), rest) == nil
        } ?? false
    }

    /// Checks that the path has a device token of any form.
    static func tokenIsMissing(_ fields: RequestFields) -> Refusal? {
        let isMissing = fields.withValue(of: .path) { $0.count <= path.utf8CodeUnitCount } ?? true
        return isMissing ? Refusal(.missingDeviceToken, "nothing follows /3/device/ in the path") : nil
    }

    /// The device token in the path; nil if it is malformed.
    static func token(_ fields: RequestFields) -> DeviceToken? {
        fields.withValue(of: .path) {
            DeviceToken(hex: UnsafeRawBufferPointer(rebasing: $0[path.utf8CodeUnitCount...]))
        } ?? nil
    }

    /// Parses the fields except the topic.
    static func read(_ fields: RequestFields, into request: inout Fields) -> Refusal? {
        if fields.has(.apnsID) {
            request.id = fields.withValue(of: .apnsID) { NotificationID(utf8: $0) } ?? nil
            guard request.id != nil else {
                return Refusal(.badMessageID, "apns-id is a UUID in the form 8-4-4-4-12")
            }
        }
        if fields.has(.apnsExpiration) {
            guard let expiration = fields.withValue(of: .apnsExpiration, { Expiration(utf8: $0) }) ?? nil else {
                return Refusal(.badExpirationDate, "apns-expiration is \(Expiration.rule)")
            }
            request.expiration = expiration
        }
        let type = pushType(fields)
        if let refusal = readPriority(fields, type, into: &request) { return refusal }
        guard type != .some(nil) else {
            return Refusal(.invalidPushType, "apns-push-type has an unknown value")
        }
        request.pushType = type ?? nil
        return readCollapseID(fields, into: &request)
    }

    private static func readPriority(
        _ fields: RequestFields,
        _ type: PushType??,
        into request: inout Fields
    ) -> Refusal? {
        let isBackground = type == .some(.some(.background))
        guard fields.has(.apnsPriority) else {
            // APNs documents 5 for background and a default of 10. The default does not count as a declared 10.
            request.priority = isBackground ? .conserving : .immediate
            return nil
        }
        if fields.value(of: .apnsPriority, is: "10") {
            guard !isBackground else {
                return Refusal(.badPriority, "a background notification has priority 5 or 1, never 10")
            }
            request.priority = .immediate
        } else if fields.value(of: .apnsPriority, is: "5") {
            request.priority = .conserving
        } else if fields.value(of: .apnsPriority, is: "1") {
            request.priority = .low
        } else {
            return Refusal(.badPriority, "apns-priority is 10, 5 or 1")
        }
        return nil
    }

    private static func readCollapseID(_ fields: RequestFields, into request: inout Fields) -> Refusal? {
        guard fields.has(.apnsCollapseID) else { return nil }
        // Some clients always send the field; an empty value counts as none.
        let isEmpty = fields.withValue(of: .apnsCollapseID) { $0.isEmpty } ?? true
        guard !isEmpty else { return nil }
        request.collapseID = fields.withValue(of: .apnsCollapseID) { CollapseID(utf8: $0) } ?? nil
        guard request.collapseID != nil, !fields.isMalformed(.apnsCollapseID) else {
            return Refusal(.badCollapseID, "apns-collapse-id is \(CollapseID.rule)")
        }
        return nil
    }

    /// The declared push type: nil if there is none, `.some(nil)` if it is unknown.
    static func pushType(_ fields: RequestFields) -> PushType?? {
        guard fields.has(.apnsPushType) else { return nil }
        for (name, type) in pushTypes where fields.value(of: .apnsPushType, is: name) { return type }
        return .some(nil)
    }

    /// All push types, the most frequent first.
    private static let pushTypes: [(StaticString, PushType)] = [
        ("alert", .alert), ("background", .background), ("voip", .voip), ("liveactivity", .liveactivity),
        ("complication", .complication), ("controls", .controls), ("fileprovider", .fileprovider),
        ("location", .location), ("mdm", .mdm), ("pushtotalk", .pushtotalk), ("widgets", .widgets),
    ]

    /// Checks the length of a body, in bytes; the push type decides the maximum.
    /// - Returns: nil if it is valid.
    static func checkLength(_ byteCount: Int, kind: PushType) -> Refusal? {
        guard byteCount > 0 else { return Refusal(.payloadEmpty, "the request has no body") }
        guard byteCount <= kind.maximumPayloadBytes else {
            return Refusal(
                .payloadTooLarge,
                kind == .voip ? "a voip payload has at most 5,120 bytes" : "a payload has at most 4,096 bytes"
            )
        }
        return nil
    }
}
