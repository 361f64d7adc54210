import Crypto
import Foundation
import HeraldIdentity

/// The trust folder of a node that joins a cluster, before it can be opened.
package enum JoiningFolder {
    /// The facts that a folder needs before it can be opened.
    package static let firstFacts =
        [SharedFile.Name.root, .providerAuthority, .deviceAuthority].map { SharedKey(.file, $0.rawValue) } + [
            .tokenKeys
        ]
    /// The fact that a folder gets before it makes its own; the cluster may lack it.
    package static let announcementKey = SharedKey(.file, SharedFile.Name.announcementKey.rawValue)

    /// Sixteen bytes that identify the root authority of a folder; nil if it has none yet.
    /// - Throws: ``TrustError``.
    package static func rootFingerprint(at data: String) throws -> [UInt8]? {
        let layout = TrustLayout(data: data)
        guard TrustFile.exists(layout.root) else { return nil }
        let bundle = try PEMBundle(pem: try TrustFile.read(layout.root, .secret), path: layout.root)
        let root = try CertificateAuthority(bundle: bundle, path: layout.root)
        return Array(SHA256.hash(data: root.der).prefix(16))
    }

    /// Writes the authorities and token keys of a cluster into the folder of a node that lacks them.
    ///
    /// ``TrustFolder/create(at:hostnames:listening:asApple:store:now:)`` makes the rest.
    /// - Throws: ``TrustError``; the next call goes on.
    package static func fill(at data: String, with facts: [SharedFact]) async throws {
        let layout = try makeFolders(at: data)
        try await TrustLock.with(layout) {
            for fact in facts {
                switch fact {
                case .file(let file):
                    let (path, secrecy) = layout.shared(file.name)
                    if !TrustFile.exists(path) { try TrustFile.write(Array(file.content), to: path, secrecy) }
                case .tokenKeys(let document) where !TrustFile.exists(layout.tokenKeys):
                    try TrustFile.write(try TokenKeyRing(document).json(), to: layout.tokenKeys, .secret)
                default: break
                }
            }
        }
    }

    /// The cluster key of a folder; nil if it has none.
    /// - Throws: ``TrustError/Code/damaged``, or another problem of the file.
    package static func clusterKey(at data: String) throws -> ClusterKey? {
        let path = TrustLayout(data: data).clusterKey
        guard TrustFile.exists(path) else { return nil }
        guard let key = ClusterKey(file: try TrustFile.read(path, .secret)) else {
            throw TrustError(.damaged, "\(path) is not a cluster key: copy it from another node's data folder")
        }
        return key
    }

    /// Keeps the cluster key in a folder, which is made if it is missing.
    package static func keep(_ key: ClusterKey, at data: String) throws {
        let layout = try makeFolders(at: data)
        try TrustFile.write(key.file, to: layout.clusterKey, .secret)
    }

    /// Makes the data folder and the trust folder in it, as far as they are missing.
    static func makeFolders(at data: String) throws -> TrustLayout {
        let layout = TrustLayout(data: data)
        if mkdir(layout.data, 0o755) != 0, errno != EEXIST {
            throw TrustFile.failure(.unwritable, "cannot create the folder \(layout.data)")
        }
        try TrustFile.makePrivateFolder(layout.folder)
        return layout
    }
}

extension TrustFolder {
    /// The root authority as the first node shares it.
    package func sharedRoot() throws -> SharedFact {
        let content = try TrustFile.read(layout.root, .secret)
        return .file(SharedFile(name: .root, revision: 1, content: Data(content)))
    }
}
