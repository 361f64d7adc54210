import Foundation
import HeraldIdentity
import X509

/// The folder with a device's identity.
///
///     identity.pem   0600   certificate, chain and private key
///     ca.pem         0644   the service's authority
///     service.json   0644   where the service is
///
/// Only its owner has access (0700). A folder or file that others can read is refused, with an error that says how to fix
/// it. Each file is written durably under another name and then renamed: a reader finds the old or the new one.
public struct DeviceFolder: Hashable, Sendable {
    /// The default path.
    public static let defaultPath = "./herald-device"

    /// The folder's path.
    public let path: String

    /// Names a folder; does not access it.
    public init(_ path: String = defaultPath) {
        self.path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    }

    /// The path of the certificate, its chain and the private key, PEM.
    public var identityPath: String { path + "/identity.pem" }
    /// The path of the service's authority, PEM.
    public var authorityPath: String { path + "/ca.pem" }
    /// The path of the service's address, JSON.
    public var servicePath: String { path + "/service.json" }

    /// The service's address, as in `service.json`.
    public struct Service: Hashable, Sendable, Codable {
        /// The host of the device port.
        public var host: String
        /// The device port.
        public var port: Int
        /// The name in the service's certificate; nil for the host.
        public var serverName: String?
        /// The activation listener, which also renews the certificate: `https://push.example.com:2191`.
        public var activation: String

        /// Creates an address.
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

    /// Creates the folder if it is missing, and checks that others have no access.
    /// - Throws: ``EnrollmentError/Code/folder``.
    public func prepare() throws {
        // Foundation's `deletingLastPathComponent` traps on a path of one character.
        if let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.startIndex {
            // The next call reports a failure.
            try? FileManager.default.createDirectory(atPath: String(path[..<slash]), withIntermediateDirectories: true)
        }
        try checked { try TrustFile.makePrivateFolder(path) }
    }

    /// The device's identity.
    /// - Throws: ``EnrollmentError/Code/folder`` if there is none, or if others can read it; ``DeviceError``.
    public func credential() throws -> DeviceCredential {
        try DeviceCredential(pem: try identity())
    }

    /// The service's authority, PEM.
    /// - Throws: ``EnrollmentError/Code/folder``.
    public func authorities() throws -> [UInt8] {
        try checkActivated()
        return try checked { try TrustFile.read(authorityPath, .open) }
    }

    /// The service's address.
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

    /// The certificate of the identity and the rest of its chain.
    func certificates() throws -> [Certificate] {
        let pem = try identity()
        return try checked { try PEMBundle(pem: pem, path: identityPath).certificates }
    }

    /// Saves a new identity.
    ///
    /// `identity.pem` is written last: if it exists, the folder is complete.
    ///
    /// Throws ``EnrollmentError/Code/folder``.
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

    /// Saves the next certificate and key of the same device.
    func replaceIdentity(_ pem: [UInt8]) throws {
        try checked { try TrustFile.write(pem, to: identityPath, .secret) }
    }

    /// Refuses to replace an identity, unless it is allowed.
    func checkVacant(replaces: Bool) throws {
        guard isActivated, !replaces else { return }
        throw EnrollmentError(
            .folder,
            "\(path) already has a device's identity: name another folder with --folder, or replace this one with --replace"
        )
    }

    private func checkActivated() throws {
        guard !isActivated else { return }
        throw EnrollmentError(
            .folder,
            "there is no device in \(path) yet: activate one with `herald agent activate`, or name another folder with --folder"
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
