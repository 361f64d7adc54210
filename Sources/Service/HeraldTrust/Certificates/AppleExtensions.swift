import HeraldModel
import SwiftASN1
import X509

/// The extensions of Apple's push certificates.
///
/// The two environments are extensions without content (DER NULL). The topics are a sequence in which a sequence of labels
/// follows each topic, a UTF8String ("Establishing a certificate-based connection to APNs").
enum AppleExtensions {
    static let sandbox: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 3, 1]
    static let production: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 3, 2]
    static let voipTopics: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 3, 4]
    static let topics: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 3, 6]
    /// The attribute UID of a subject (RFC 4519 §2.39).
    static let userID: ASN1ObjectIdentifier = [0, 9, 2342, 19_200_300, 100, 1, 1]

    static func mark(_ environment: PushEnvironment) throws -> Certificate.Extension {
        var serializer = DER.Serializer()
        try serializer.serialize(ASN1Null())
        let oid = environment == .sandbox ? sandbox : production
        return Certificate.Extension(oid: oid, critical: false, value: serializer.serializedBytes[...])
    }

    static func topicList(_ list: [Topic]) throws -> Certificate.Extension {
        var serializer = DER.Serializer()
        try serializer.appendConstructedNode(identifier: .sequence) { coder in
            for topic in list {
                try coder.serialize(ASN1UTF8String(topic.name))
                try coder.appendConstructedNode(identifier: .sequence) { coder in
                    try coder.serialize(ASN1UTF8String(label(topic)))
                }
            }
        }
        return Certificate.Extension(oid: topics, critical: false, value: serializer.serializedBytes[...])
    }

    /// Reads a list of topics, without the labels.
    /// - Returns: nil if the list or one of its topics is invalid.
    static func topicList(_ value: ArraySlice<UInt8>) -> Set<Topic>? {
        guard let node = try? DER.parse(value) else { return nil }
        return try? DER.sequence(node, identifier: .sequence) { nodes in
            var list: Set<Topic> = []
            while let item = nodes.next() {
                if item.identifier == .sequence { continue }
                guard let topic = Topic(utf8: try ASN1UTF8String(derEncoded: item).bytes) else {
                    throw ASN1Error.invalidASN1Object(reason: "not a topic")
                }
                list.insert(topic)
            }
            return list
        }
    }

    private static func label(_ topic: Topic) -> String {
        let suffix = PushType.allCases.map(\.topicSuffix).first { !$0.isEmpty && topic.name.hasSuffix($0) }
        return suffix.map { String($0.dropFirst()) } ?? "app"
    }
}
