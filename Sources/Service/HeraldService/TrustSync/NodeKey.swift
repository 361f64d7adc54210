package import HeraldCluster
package import HeraldTrust

/// The cluster key of a node: that of its folder, that of the setting `cluster-key`, or a new one for a new cluster.
package struct NodeKey: Sendable {
    private enum Source {
        case folder
        case setting
        case new
    }

    package let key: ClusterKey
    private let source: Source

    /// Finds the key, or makes one.
    /// - Throws: ``CommandError/Code/configuration`` for a setting that cannot be used, or names another key than the folder's.
    package init(_ configuration: ClusterConfiguration, _ folder: DataFolder) throws {
        let kept = try JoiningFolder.clusterKey(at: folder.path)
        let given = try configuration.clusterKey()
        if let kept, let given, kept.fingerprint != given.fingerprint {
            throw CommandError(
                .configuration,
                "\(configuration.key), which the setting cluster-key names, is another key than "
                    + "\(TrustLayout(data: folder.path).clusterKey): remove the setting, or start with an empty data folder"
            )
        }
        key = kept ?? given ?? ClusterKey()
        source = kept != nil ? .folder : given != nil ? .setting : .new
    }

    /// Whether no cluster can have it yet.
    package var isNew: Bool { source == .new }

    /// The seal of everything that the node writes to NATS.
    package var seal: RecordSeal { RecordSeal(key.recordKey) }

    /// The messages of a node, sealed for an incarnation of the cluster.
    /// - Throws: If the connection takes no more subscriptions.
    package func messages(
        of node: NodeName,
        in incarnation: UInt32,
        _ link: EngineLink,
        _ setAside: SetAside
    ) throws -> NATSNodeMessages {
        try NATSNodeMessages(link.connection, node: node, seal: seal.of(incarnation), setAside)
    }

    /// Keeps the key in a folder that may lack it.
    package func keep(in folder: DataFolder) throws {
        if source != .folder { try JoiningFolder.keep(key, at: folder.path) }
    }

    /// Does work that reads the cluster's record.
    /// - Throws: ``OtherTrust/noKey`` if it does not open under a key that was only just made, or an error of the work.
    package func opening<Value>(_ work: () async throws -> Value) async throws -> Value {
        do {
            return try await work()
        } catch OtherTrust.otherKey where isNew {
            throw OtherTrust.noKey
        }
    }
}
