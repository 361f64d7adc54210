import CoreMetrics
import HeraldConsole
import HeraldCourier
import HeraldGateway
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust

/// The gauges that are read at each scrape of the metrics.
struct ServiceGauges: Sendable {
    let assembly: ServiceAssembly
    let administration: ServiceAdministration
    private let ready = Gauge(label: "herald_ready")
    private let warnings = Gauge(label: "herald_health_warnings")
    private let storeSize = Gauge(label: "herald_store_size_bytes")
    private let storeFree = Gauge(label: "herald_store_free_bytes")
    private let writesPending = Gauge(label: "herald_store_writes_pending")
    private let arrivalsWaiting = Gauge(label: "herald_device_arrivals_waiting")
    private let devices: Gauge
    private let providers: Gauge
    private let binary: Gauge
    private let feedback: Gauge
    private let serverCertificate = ServiceGauges.expiry("server")

    init(_ assembly: ServiceAssembly, _ administration: ServiceAdministration) {
        self.assembly = assembly
        self.administration = administration
        BuildMetric.record()
        let configuration = assembly.configuration
        devices = Self.connections(of: configuration.deviceListener)
        providers = Self.connections(of: configuration.gateway.listener)
        binary = Self.connections(of: configuration.binary.listener)
        feedback = Self.connections(of: configuration.feedback.listener)
        Gauge(label: "herald_notification_memory_limit_bytes").record(configuration.postOffice.notificationBytes)
        let trust = assembly.trust.folder
        ServiceGauges.expiry("root authority").record(trust.root.expires.milliseconds / 1000)
        ServiceGauges.expiry("provider authority").record(trust.providerAuthority.expires.milliseconds / 1000)
        ServiceGauges.expiry("device authority").record(trust.deviceAuthority.expires.milliseconds / 1000)
    }

    /// Reads everything now.
    func read() {
        readOften()
        // While the file is being replaced, the last value stays.
        if let certificate = try? assembly.trust.folder.serverCertificate() {
            serverCertificate.record(certificate.expires.milliseconds / 1000)
        }
    }

    /// Reads what costs little enough for every second.
    func readOften() {
        ready.record(administration.problems.isEmpty ? 1 : 0)
        warnings.record(administration.warnings.count)
        storeSize.record(assembly.storage.store.sizeOnDisk)
        if let free = assembly.storage.store.freeSpace { storeFree.record(free) }
        writesPending.record(assembly.storage.store.pendingWrites)
        devices.record(assembly.listeners.courier.connectionCount)
        arrivalsWaiting.record(assembly.listeners.courier.waitingArrivals)
        providers.record(assembly.listeners.gateway.connectionCount)
        binary.record(assembly.listeners.binaryGateway.binaryConnectionCount)
        feedback.record(assembly.listeners.binaryGateway.feedbackConnectionCount)
        assembly.delivery.postOffice.measure()
        assembly.storage.cluster?.measure()
    }

    /// Records a listener's limit of connections.
    /// - Returns: The gauge of its open connections.
    private static func connections(of listener: ListenerConfiguration) -> Gauge {
        let dimensions = [("listener", listener.name)]
        Gauge(label: "herald_connections_limit", dimensions: dimensions).record(listener.maximumConnections)
        return Gauge(label: "herald_connections_open", dimensions: dimensions)
    }

    private static func expiry(_ certificate: String) -> Gauge {
        Gauge(label: "herald_certificate_expiry_timestamp_seconds", dimensions: [("certificate", certificate)])
    }
}

/// The metric that says which version runs.
package enum BuildMetric {
    package static func record() {
        Gauge(label: "herald_build_info", dimensions: [("version", Version.number)]).record(1)
    }
}
