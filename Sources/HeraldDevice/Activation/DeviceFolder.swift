import Foundation
import HeraldModel
import HeraldTrust
import X509

/// The folder in which a device keeps who it is.
///
///     identity.pem   0600   certificate, chain and private key
///     ca.pem         0644   the service's authority
///     service.json   0644   where the service is
///
/// The folder is its owner's alone (0700). What is open to others is not used, with an error that says how to mend it. Each
/// file is written whole and durably under another name, then renamed: a reader finds the old one or the new one.
public struct DeviceFolder: Hashable, Sendable {
    /// Where it is if nothing is said.
    public static let defaultPath = "./herald-device"

    /// The folder's path.
    public let path: String

    /// Names a folder; touches nothing.
    public init(_ path: String = defaultPath) {
        self.path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    }

    /// The path of the certificate, its chain and the private key, PEM.
    public var identityPath: String { path + "/identity.pem" }
    /// The path of the authority that vouches for the service, PEM.
    public var authorityPath: String { path + "/ca.pem" }
    /// The path of where the service is, JSON.
    public var servicePath: String { path + "/service.json" }

    /// Where the service is, as `service.json` says it.
    public struct Service: Hashable, Sendable, Codable {
        /// The host of the door for devices.
        public var host: String
        /// The port of the door for devices.
        public var port: Int
        /// The name that the service's certificate must have; nil for the host.
        public var serverName: String?
        /// The activation door, where the certificate is renewed: `https://push.example.com:2191`.
        public var activation: String

        /// Says where the service is.
        public init(host: String, port: Int, serverName: String? = nil, activation: String) {
            self.host = host
            self.port = port
            self.serverName = serverName
            self.activation = activation
        }

        private enum CodingKeys: String, CodingKey {
            case host
            case port
            case serverName = "server_name"
            case activation
        }
    }

    /// Whether a device was activated here.
    public var isActivated: Bool {
        TrustFile.exists(identityPath)
    }

    /// Makes the folder if it is not there, and checks that nobody else can look into it.
    /// - Throws: ``EnrollmentError/Code/folder``.
    public func prepare() throws {
        let parent = (path as NSString).deletingLastPathComponent
        if !parent.isEmpty {
            // What is wrong there, the next call says.
            try? FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
        }
        try checked { try TrustFile.makePrivateFolder(path) }
    }

    /// Who the device is.
    /// - Throws: ``EnrollmentError/Code/folder`` if there is none, or if it is open to others; ``DeviceError``.
    public func credential() throws -> DeviceCredential {
        try DeviceCredential(pem: try identity())
    }

    /// The authority that vouches for the service, PEM.
    /// - Throws: ``EnrollmentError/Code/folder``.
    public func authorities() throws -> [UInt8] {
        try checkActivated()
        return try checked { try TrustFile.read(authorityPath, .open) }
    }

    /// Where the service is.
    /// - Throws: ``EnrollmentError/Code/folder``.
    public func service() throws -> Service {
        try checkActivated()
        let bytes = try checked { try TrustFile.read(servicePath, .open) }
        guard let service = try? JSONDecoder().decode(Service.self, from: Data(bytes)) else {
            throw EnrollmentError(
                .folder,
                #"\#(servicePath) should be like {"host":"push.example.com","port":5223,"#
                    + #""activation":"https://push.example.com:2191"}"#
            )
        }
        return service
    }

    /// The identity's PEM, with the private key.
    func identity() throws -> [UInt8] {
        try checkActivated()
        return try checked {
            try TrustFile.checkPrivateFolder(path)
            return try TrustFile.read(identityPath, .secret)
        }
    }

    /// The certificate of the identity, and what its chain holds besides.
    func certificates() throws -> [Certificate] {
        let pem = try identity()
        let certificates = try checked { try PEMBundle(pem: pem, path: identityPath).certificates }
        guard !certificates.isEmpty else {
            throw EnrollmentError(.folder, "\(identityPath) holds no certificate: activate the device anew")
        }
        return certificates
    }

    /// Keeps all of a new identity.
    ///
    /// The identity is written last: where it is, the rest is.
    /// - Parameters:
    ///   - identity: Certificate, chain and key, PEM.
    ///   - authority: The service's authority, PEM.
    ///   - service: Where it is.
    ///   - replaces: Whether an identity that is there may be overwritten.
    /// - Throws: ``EnrollmentError/Code/folder``.
    func save(identity: [UInt8], authority: [UInt8], service: Service, replaces: Bool) throws {
        try prepare()
        try checkVacant(replaces: replaces)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
        guard let json = try? encoder.encode(service) else { return }
        try checked {
            try TrustFile.write(Array(json) + [UInt8(ascii: "\n")], to: servicePath, .open)
            try TrustFile.write(authority, to: authorityPath, .open)
            try TrustFile.write(identity, to: identityPath, .secret)
        }
    }

    /// Keeps the next certificate and key of the same device.
    func replaceIdentity(_ pem: [UInt8]) throws {
        try checked { try TrustFile.write(pem, to: identityPath, .secret) }
    }

    /// Refuses to overwrite an identity, unless it was said.
    func checkVacant(replaces: Bool) throws {
        guard isActivated, !replaces else { return }
        throw EnrollmentError(
            .folder,
            "\(path) has a device's identity already: name another folder with --folder, or say --replace to lose this one"
        )
    }

    private func checkActivated() throws {
        guard !isActivated else { return }
        throw EnrollmentError(
            .folder,
            "there is no device in \(path) yet: make one with `herald agent activate`, or name another folder with --folder"
        )
    }

    private func checked<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let error as TrustError {
            throw EnrollmentError(.folder, error.message)
        }
    }
}
