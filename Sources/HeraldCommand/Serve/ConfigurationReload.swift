import HeraldConsole
import HeraldCourier
import HeraldGateway
import HeraldMailbox
import Logging
import Synchronization

/// Takes over what changed in the configuration while the service runs.
///
/// All or nothing: a configuration that cannot be is refused whole, in one line of the log, and what was in force stays.
final class ConfigurationReload: Sendable {
    private let read: @Sendable () throws -> ServerConfiguration
    private let assembly: ServiceAssembly
    private let threshold: LogThreshold
    /// What is in force, but for what waits for the next start.
    private let current: Mutex<ServerConfiguration>

    /// - Parameters:
    ///   - assembly: The service, which runs by its configuration.
    ///   - threshold: The least that is logged.
    ///   - read: Reads the configuration again, from the same sources.
    init(
        _ assembly: ServiceAssembly,
        threshold: LogThreshold,
        read: @escaping @Sendable () throws -> ServerConfiguration
    ) {
        self.assembly = assembly
        self.threshold = threshold
        self.read = read
        current = Mutex(assembly.configuration)
    }

    /// Reads the configuration again, and takes it over where it can.
    func reload() {
        let logger = assembly.logger
        let next: ServerConfiguration
        do {
            next = try read()
            try assembly.drillOperations.check(next.drills)
            try next.checkPayloadDrills(on: assembly.configuration.host)
        } catch {
            logger.error("configuration not reloaded; everything stays as it was", metadata: ["error": "\(error)"])
            return
        }
        let changes = current.withLock { current in
            defer { current = next }
            return current.changes(to: next)
        }
        let live = changes.filter(\.isLive)
        if !live.isEmpty { apply(next, live) }
        logger.notice("configuration reloaded", metadata: ["changed": "\(ConfigurationReload.list(live))"])
        let waiting = assembly.configuration.changes(to: next).filter { !$0.isLive }
        if !waiting.isEmpty {
            logger.warning(
                "takes effect at the next start",
                metadata: ["settings": "\(ConfigurationReload.list(waiting))"]
            )
        }
    }

    private func apply(_ configuration: ServerConfiguration, _ changes: [SettingKey]) {
        threshold.level = configuration.logLevel
        assembly.postOffice.replaceTerms(configuration.postOffice.terms)
        assembly.gateway.replaceRules(configuration.gateway.rules)
        assembly.courier.replaceLimits(
            longestKeepAlive: configuration.courier.longestKeepAlive,
            longestSession: configuration.courier.longestSession
        )
        assembly.drills.allowsPayloadDrills = configuration.allowsPayloadDrills
        // A drill of the list that is over does not begin again because something else changed.
        guard changes.contains(.drill) else { return }
        do {
            try assembly.drillOperations.configure(configuration.drills)
        } catch {
            assembly.logger.error("a configured drill could not begin", metadata: ["error": "\(error)"])
        }
    }

    private static func list(_ keys: [SettingKey]) -> String {
        keys.isEmpty ? "nothing" : keys.map(\.rawValue).joined(separator: " ")
    }
}
