import Foundation
import HeraldCluster
import NIOCore

/// The file of a node in its data folder: who it is, and what it has seen of its cluster.
struct NodeFile: Codable, Hashable, Sendable {
    /// A random number of the folder.
    var folder = UInt64.random(in: 0 ... .max)
    var seen = SeenStreams()
    /// The cluster's record, which somebody may overwrite there, under the cluster key; nil before the node was in a cluster.
    private var cluster: Data?

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

    private static let place = "node.json"

    /// Notes the cluster's record, or that none is known.
    mutating func note(_ record: ClusterRecord?, _ seal: RecordSeal) {
        cluster = record.flatMap { seal.seal($0.body, at: Self.place) }.map { Data($0.readableBytesView) }
    }

    /// The cluster's record as this node has seen it; nil under another key, which must not write it.
    func cluster(_ seal: RecordSeal) -> ClusterRecord? {
        cluster.flatMap { seal.open(ByteBuffer(bytes: $0), at: Self.place) }.flatMap { try? ClusterRecord($0) }
    }

    /// - Throws: ``CommandError/Code/file``.
    func write(_ folder: DataFolder) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
        try SafeFile.write(Array(encoder.encode(self)) + [UInt8(ascii: "\n")], to: folder.nodePath, mode: 0o600)
    }
}
