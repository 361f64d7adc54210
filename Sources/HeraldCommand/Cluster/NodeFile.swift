import Foundation
import HeraldCluster
import NIOCore

/// The file of a node in its data folder: who it is, and what it has seen of its cluster.
struct NodeFile: Codable, Hashable, Sendable {
    /// A random number of the folder.
    var folder = UInt64.random(in: 0 ... .max)
    var seen = SeenStreams()
    /// The body of the cluster's record, which somebody may overwrite there; nil before the node was in a cluster.
    var cluster: Data?

    /// Reads the file; a new folder gets a new number.
    /// - Throws: ``CommandError/Code/file`` if it cannot be read, or is damaged.
    static func read(_ folder: DataFolder) throws -> NodeFile {
        guard FileManager.default.fileExists(atPath: folder.nodePath) else { return NodeFile() }
        let bytes = try SafeFile.read(folder.nodePath)
        do {
            return try JSONDecoder().decode(NodeFile.self, from: Data(bytes))
        } catch {
            throw CommandError(
                .file,
                "\(folder.nodePath) is damaged: remove it; this node then forgets what it has seen of its cluster"
            )
        }
    }

    /// The cluster's record as this node has seen it.
    var knownCluster: ClusterRecord? { cluster.flatMap { try? ClusterRecord(ByteBuffer(bytes: $0)) } }

    /// - Throws: ``CommandError/Code/file``.
    func write(_ folder: DataFolder) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
        try SafeFile.write(Array(encoder.encode(self)) + [UInt8(ascii: "\n")], to: folder.nodePath, mode: 0o600)
    }
}
