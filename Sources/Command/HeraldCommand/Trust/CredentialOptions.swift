import ArgumentParser
import HeraldIdentity
import HeraldModel
import HeraldService
import HeraldTrust

/// Reads the options of commands that issue credentials.
enum CredentialOptions {
    static func topic(_ text: String) throws -> Topic {
        guard let topic = Topic(text) else {
            throw ValidationError(
                "\(text.debugDescription) is not a topic: it consists of a-z, A-Z, 0-9, '-', '_' and single dots in between, "
                    + "like com.example.chat"
            )
        }
        return topic
    }

    static func team(_ text: String) throws -> String {
        guard ProviderToken.isIdentifier(text) else {
            throw ValidationError(
                "\(text.debugDescription) is not a team: it has ten characters, each of A-Z or 0-9, like TEAM000001"
            )
        }
        return text
    }

    /// Refuses both or neither of an identifier and the file of a certificate.
    static func checkOne(_ id: String?, _ certificate: String?) throws {
        guard (id == nil) != (certificate == nil) else {
            throw ValidationError("Give one of an identifier and --certificate.")
        }
    }

    /// The certificate signing request of a file.
    /// - Throws: ``CommandError/Code/file``, with the file's name.
    static func request(_ path: String) throws -> [UInt8] {
        let request = try SafeFile.read(path)
        do {
            try CertificateRequest.check(request)
        } catch let error as TrustError {
            throw CommandError(.file, "\(path): \(error.message)")
        }
        return request
    }

    /// One environment, or `both`.
    static func environments(_ text: String) throws -> Set<PushEnvironment> {
        if text == "both" { return Set(PushEnvironment.allCases) }
        guard let environment = PushEnvironment(rawValue: text) else {
            throw ValidationError("\(text.debugDescription) is not an environment: it is production, sandbox, or both")
        }
        return [environment]
    }
}

/// A record and the path of its file, as one JSON object.
struct RecordWithFile<Record: Encodable>: Encodable {
    let record: Record
    let file: String

    private enum CodingKeys: String, CodingKey {
        case file
    }

    func encode(to encoder: any Encoder) throws {
        try record.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(file, forKey: .file)
    }
}
