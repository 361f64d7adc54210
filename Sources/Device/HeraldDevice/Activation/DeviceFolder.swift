import Crypto
import Foundation
import HeraldIdentity
public import HeraldModel
import SwiftASN1
import X509

/// The folder with a device's identity.
///
///     identity.pem   0600   certificate, chain and private key
///     next.key       0600   the private key of an activation whose outcome is not known
///     ca.pem         0644   the service's authority
///     service.json   0644   where the service is, and the key of its announcements
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

    /// The service, as in `service.json`.
    public struct Service: Hashable, Sendable, Codable {
        /// The addresses that the service has announced, or that of the activation; at least one.
        public var announced: [ServiceEndpoint]
        /// The public key of announcements (P-256, X9.63, base64).
        ///
        /// It was learned at the activation, and never changes.
        public var announcementKey: String
        /// The version of the announcement that the device has.
        public var announcement: Int64
        /// The address that a setting of this device puts in front of those that are announced; nil without one.
        public var preferred: ServiceEndpoint?

        private enum CodingKeys: String, CodingKey {
            case announced = "addresses"
            case announcementKey = "announcement_key"
            case announcement
            case preferred
        }

        /// The addresses in the order of their use, the preferred one first.
        public var addresses: [ServiceEndpoint] {
            guard let preferred else { return announced }
            return [preferred] + announced.filter { $0 != preferred }
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
        guard let service = try? JSONDecoder().decode(Service.self, from: Data(bytes)), !service.announced.isEmpty
        else {
            throw EnrollmentError(.folder, "\(servicePath) cannot be read: activate the device again")
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
        try write(service, authority: authority)
        try checked { try TrustFile.write(identity, to: identityPath, .secret) }
    }

    /// Writes what the service announces; `service.json` last, because it has the version.
    private func write(_ service: Service, authority: [UInt8]) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
        guard let json = try? encoder.encode(service) else { return }
        try checked {
            try TrustFile.write(authority, to: authorityPath, .open)
            try TrustFile.write(Array(json) + [UInt8(ascii: "\n")], to: servicePath, .open)
        }
    }

    /// Takes what the service announces, if it is newer than what the folder has.
    /// - Parameter text: The signed text, from any connection.
    /// - Returns: The announcement; nil if it is not newer.
    /// - Throws: ``EnrollmentError/Code/untrusted`` if it is not signed with the key of the activation, or cannot be read;
    ///   ``EnrollmentError/Code/folder``.
    func take(_ text: String) throws -> Announcement? {
        try alone {
            var service = try service()
            let key = Data(base64Encoded: service.announcementKey)
                .flatMap { try? P256.Signing.PublicKey(x963Representation: $0) }
            guard let key else {
                throw EnrollmentError(.folder, "\(servicePath) has no key of announcements: activate the device again")
            }
            let announcement: Announcement
            do throws(Announcement.Fault) {
                announcement = try Announcement(text, signedBy: key)
            } catch {
                throw EnrollmentError(.untrusted, error.rawValue)
            }
            guard announcement.version > service.announcement else { return nil }
            service.announcement = announcement.version
            if !announcement.addresses.isEmpty { service.announced = announcement.addresses }
            try write(service, authority: try Self.pem(announcement.authorities))
            return announcement
        }
    }

    /// Makes an address the preferred one, for connections and renewals, whatever the service announces.
    /// - Parameters:
    ///   - service: The activation listener; nil for the order in which the service announces its addresses.
    ///   - port: The listener for devices; nil for the port of the present address.
    /// - Throws: ``EnrollmentError/Code/folder``.
    public func prefer(_ service: ServiceAddress?, port: Int?) throws {
        try alone {
            var known = try self.service()
            guard let service else {
                guard let former = known.preferred else { return }
                known.preferred = nil
                // Perhaps the only one that works; the next announcement with addresses drops it.
                if !known.announced.contains(former) { known.announced.append(former) }
                return try write(known, authority: try authorities())
            }
            let port = port ?? known.addresses.first { $0.host == service.host }?.port ?? known.addresses[0].port
            let address = ServiceEndpoint(host: service.host, port: port, activation: service.port)
            guard known.preferred != address else { return }
            known.preferred = address
            try write(known, authority: try authorities())
        }
    }

    /// Certificates (DER) as PEM.
    static func pem(_ authorities: [[UInt8]]) throws -> [UInt8] {
        do {
            return Array(try PEMBundle(certificates: authorities.map { try Certificate(derEncoded: $0) }).pem().utf8)
        } catch {
            throw EnrollmentError(.badAnswer, "the authorities of the service cannot be read")
        }
    }

    private var nextKeyPath: String { path + "/next.key" }

    /// The key of the activation that has begun, or of a new one.
    ///
    /// It is kept until the certificate is there: with the same key, the service answers as it did.
    func nextKey() throws -> DeviceKey {
        try checked {
            if TrustFile.exists(nextKeyPath), let key = DeviceKey(pem: try TrustFile.read(nextKeyPath, .secret)) {
                return key
            }
            let key = DeviceKey()
            try TrustFile.write(key.pem, to: nextKeyPath, .secret)
            return key
        }
    }

    /// Ends an activation, whose key is of no use any longer.
    func forgetNextKey() { unlink(nextKeyPath) }

    /// Saves the next certificate and key of the same device.
    func replaceIdentity(_ pem: [UInt8]) throws {
        try alone { try checked { try TrustFile.write(pem, to: identityPath, .secret) } }
    }

    /// Changes files while nobody else does: a connection, a renewal and a command may want to at once.
    private func alone<Value>(_ body: () throws -> Value) throws -> Value {
        let lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        // Without a folder, the body says what is wrong.
        defer { if lock >= 0 { close(lock) } }
        while lock >= 0, flock(lock, LOCK_EX) != 0, errno == EINTR {}
        return try body()
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

extension ServiceEndpoint {
    /// The activation listener.
    var enrollment: ServiceAddress { ServiceAddress(host: host, port: activation) }
}
