import Crypto
package import Foundation
import HeraldModel
import HeraldTrust

/// The list of a backup's files, with their sizes and digests: the file `manifest.json`.
///
/// The text is the only one that this type writes for these values, and it contains its own digest, so every changed byte is
/// noticed.
package struct BackupManifest: Codable, Hashable, Sendable {
    /// A file of the backup.
    package struct File: Codable, Hashable, Sendable {
        /// Relative to the backup, like `trust/token.keys`.
        let path: String
        /// In bytes.
        package let size: Int
        /// SHA-256, in hexadecimal.
        let sha256: String
    }

    /// The part of a cluster that a backup has.
    package enum ClusterPart: String, Codable, Sendable {
        /// Trust and journal of one node; the cluster keeps devices and notifications.
        case node
        /// All of it, and the journal of one node.
        case whole
    }

    /// The number grows when an older Herald cannot restore the backup.
    package static let newestFormat = 2

    /// 2 for a cluster or a node of it, otherwise 1.
    package let format: Int
    /// The version of Herald that made the backup.
    package let herald: String
    /// When the backup began, RFC 3339.
    package let created: String
    /// Notifications that wait, and devices that have connected; 0 if the service never ran, and for one node of a cluster.
    package let waiting: Int
    package let devices: Int
    /// Absent for a single machine.
    package let cluster: ClusterPart?
    /// Sorted by path.
    package let files: [File]
    /// SHA-256 of the text of this manifest with an empty digest, in hexadecimal.
    private(set) var digest: String

    package init(
        herald: String,
        created: String,
        waiting: Int,
        devices: Int,
        cluster: ClusterPart?,
        files: [File]
    ) throws {
        format = cluster == nil ? 1 : 2
        self.cluster = cluster
        self.herald = herald
        self.created = created
        self.waiting = waiting
        self.devices = devices
        self.files = files.sorted { $0.path < $1.path }
        digest = ""
        digest = Hex.text(SHA256.hash(data: try bytes()))
    }

    /// Reads the content of the file; `path` is for messages.
    /// - Throws: ``CommandError/Code/folder`` if it is damaged, or of a newer Herald.
    package init(reading bytes: [UInt8], at path: String) throws {
        struct Format: Decodable { let format: Int }
        let damaged = CommandError(.folder, "\(path) is damaged: use another backup")
        guard let format = try? JSONDecoder().decode(Format.self, from: Data(bytes)).format else { throw damaged }
        guard format <= Self.newestFormat else {
            throw CommandError(
                .folder,
                "\(path) is of a newer Herald (format \(format), this one reads up to \(Self.newestFormat)): restore it "
                    + "with that version"
            )
        }
        guard let found = try? JSONDecoder().decode(BackupManifest.self, from: Data(bytes)),
            try found.bytes() == Data(bytes)
        else { throw damaged }
        let made = try BackupManifest(
            herald: found.herald,
            created: found.created,
            waiting: found.waiting,
            devices: found.devices,
            cluster: found.cluster,
            files: found.files
        )
        guard found == made, Set(found.files.map(\.path)).count == found.files.count,
            found.files.allSatisfy({ BackupLayout.isPart($0.path) })
        else { throw damaged }
        self = found
    }

    /// The content of the file.
    package func bytes() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        return try encoder.encode(self) + Data("\n".utf8)
    }
}

/// The places of the files in a backup, which has the shape of a data folder.
enum BackupLayout {
    static let manifest = "manifest.json"
    /// Not in a backup; a restore makes a new one for a node of a cluster.
    static let node = "node.json"
    static let format = "format"
    static let authority = "ca.pem"
    static let store = "store/herald.db"
    static let ledger = "trust/ledger.db"
    /// The folders, all of mode 0700.
    static let folders = ["trust", "store"]

    /// Whether a path may be in a manifest.
    static func isPart(_ path: String) -> Bool {
        if [format, authority, store].contains(path) { return true }
        // By bytes, as the kernel reads it: with a combining mark behind it, a slash is another character.
        let parts = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return parts.count == 2 && parts[0].elementsEqual("trust".utf8)
            && !["", ".", ".."].contains { parts[1].elementsEqual($0.utf8) }
    }

    /// Whether a path may be in an unfinished backup: a file of the manifest, the manifest, the file of a node, or a file beside one of them.
    ///
    /// SQLite adds `-journal` to the name of a file, and ``SafeFile`` adds the process and `.new`.
    static func isDraftFile(_ path: String) -> Bool {
        [format, authority, manifest, node, store].contains {
            path == $0 || path.hasPrefix($0 + ".") || path.hasPrefix($0 + "-")
        }
    }

    /// The mode of a restored file.
    static func mode(_ path: String) -> mode_t {
        path == format || path == authority || path.hasSuffix(".crl") ? 0o644 : 0o600
    }
}
