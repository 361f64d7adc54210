package import HeraldConsole
package import HeraldModel
package import HeraldTrust
package import Logging
package import ServiceLifecycle
package import UnixSignals

/// The process in which services run: what it has once, and what only a command can do.
///
/// Its initial values are those of a test: no signals, no service manager, nothing printed.
package struct ServiceProcess: Sendable {
    package var logger: Logger
    /// The log of the parts' starts and stops.
    package var lifecycleLogger: Logger
    /// The registry of the process's metrics, which the console reads.
    package var metrics = PrometheusRegistry()
    /// The level of the log, which a reload may change.
    package var threshold = LogThreshold(.info)
    package var manager = ServiceManager(environment: [:])
    /// SIGHUP: asks for a reload.
    package var hangups: UnixSignalsSequence?
    /// The signals that stop a service once it runs.
    package var signals: [UnixSignal] = []
    /// The signals that stop a service at its start, too: of a node of a cluster, and of the first process of a container.
    package var stop: StopSignals?
    /// Makes the device of `--demo`.
    package var makeGuest: ServiceGuestMaker?
    /// Tells the operator a line: the addresses of the listeners, and `ready`.
    package var announce: @Sendable (String) -> Void = { _ in }
    /// Reads the configuration again, from the same sources; nil if it cannot change.
    package var configuration: (@Sendable () throws -> ServerConfiguration)?

    package init(logger: Logger, lifecycleLogger: Logger) {
        self.logger = logger
        self.lifecycleLogger = lifecycleLogger
    }
}

/// Something that runs with a service and uses it from outside: the demo's device.
package protocol ServiceGuest: Sendable {
    /// The guest's own service, once the listeners are open; `ready` yields the console's address.
    func service(
        _ data: DataFolder,
        host: String,
        apiPort: Int,
        devicePort: Int,
        ready: AsyncStream<String?>
    ) throws -> any Service
}

/// Makes the guest of a service with `--demo`: from its folder, its trust, the port of the demo's screen, and the time.
package typealias ServiceGuestMaker =
    @Sendable (DataFolder, TrustFolder, Int, WallTime) async throws -> any ServiceGuest
