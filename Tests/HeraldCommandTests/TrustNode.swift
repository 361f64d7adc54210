import Foundation
import HeraldCluster
import HeraldIdentity
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Logging
import Testing

@testable import HeraldCommand
@testable import HeraldService

/// A node's data folder on a log that it shares with others.
final class TrustNode: Sendable {
    let path: String
    let sync: TrustSync
    private let clock: ManualClock

    var trust: TrustFolder {
        var folder = sync.folder
        folder.invitationUses = folder.invitationUses.map { Uses(uses: $0, sync: sync) }
        return folder
    }

    /// The uses of a node whose synchronization does not run, and which catches up when it is asked.
    private struct Uses: InvitationUses {
        let uses: any InvitationUses
        let sync: TrustSync

        func use(_ invitation: Invitation, by device: DeviceID, at moment: WallTime) async throws -> Bool {
            try await uses.use(invitation, by: device, at: moment)
        }

        func isAbandoned(_ use: Invitation.Use) -> Bool { uses.isAbandoned(use) }

        func catchUp() async throws {
            do { try await sync.catchUp() } catch { throw TrustError(.unavailable, "\(error)") }
        }
    }

    /// The path of the cluster key in the folder.
    var key: String { TrustLayout(data: path).clusterKey }

    static func emptyFolder() -> String { NSTemporaryDirectory() + "/herald-node-" + UUID().uuidString.lowercased() }

    /// - Parameters:
    ///   - name: The name of the node.
    ///   - log: The log of the cluster.
    ///   - clock: The clock of all nodes.
    ///   - key: The setting `cluster-key`.
    ///   - folder: The data folder; a new one by default.
    ///   - acceptsLoss: The setting `cluster-accept-loss`.
    /// - Throws: If the node cannot enter.
    init(
        _ name: String,
        _ log: any ReplicatedLog,
        _ clock: ManualClock,
        key: String = "",
        folder: String = TrustNode.emptyFolder(),
        acceptsLoss: Bool = false
    ) async throws {
        self.clock = clock
        path = folder
        var configuration = ClusterConfiguration()
        configuration.key = key
        configuration.acceptsLoss = acceptsLoss
        let key = try NodeKey(configuration, DataFolder(path: folder))
        let log = SealedLog(log, key.seal, SetAside())
        let barriers = LogBarriers(log: log, node: try #require(NodeName(name)))
        let changes = RecordChanges(log: log, barriers: barriers)
        // As a start does it, before the trust.
        let partitions = try #require(Partitions(count: 1))
        _ = try await key.opening { try await ClusterIdentity.open(partitions, at: clock.now(), changes) }
        let entry = TrustEntry(
            configuration: configuration,
            folder: DataFolder(path: folder),
            key: key,
            hostnames: ["\(name).example.com"],
            clock: clock,
            step: { _ in },
            logger: Logger(label: "herald") { _ in SwiftLogNoOpLogHandler() }
        )
        sync = try await entry.enter(
            TrustEntry.Connection(
                log: log,
                barriers: barriers,
                changes: changes,
                scheduler: StandingTime()
            )
        )
    }

    deinit {
        sync.close()
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Shares what the node has, and takes what the log has.
    func settle() async throws {
        try await sync.shareAll()
        try await sync.catchUp()
    }

    func activate(_ code: InvitationCode) async throws -> EnrolledDevice {
        try await activate(code, with: try TestRequest.make()).record
    }

    func activate(_ code: InvitationCode, with request: [UInt8]) async throws -> IssuedCertificate<EnrolledDevice> {
        try await trust.devices.activate(code: code, request: request, now: clock.now(), lifetime: .seconds(3600))
    }

    /// Everything that the nodes have in common, in words.
    func common() async throws -> [String] {
        var lines = try await trust.devices.all().map { device in
            "\(device.id) \(device.revoked?.milliseconds ?? 0) \(Set(device.certificates.map(\.serial)).sorted())"
        }
        lines += try await trust.providers.all().map { "\($0.id) \($0.kind) \($0.revoked?.milliseconds ?? 0)" }
        lines += try await trust.invitations.all().map {
            "\($0.id) \($0.used.map { "\($0.device)" } ?? "-") \($0.withdrawn?.milliseconds ?? 0)"
        }
        lines += try await trust.store.topicClaims(after: nil)?.all.values.map { "\($0.topic) \($0.team)" } ?? []
        lines += try trust.tokenKeys().keys.map { "\($0.id) \($0.retired?.milliseconds ?? 0)" }
        lines += try trust.publicAuthorities().map { "\($0)" }
        return lines.sorted()
    }
}
