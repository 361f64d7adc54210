import CoreMetrics

/// The names of all metrics.
///
/// No label is a token, a path or a device.
package enum MetricName {
    package static let notificationsReceived = "herald_notifications_received_total"
    package static let notificationsRefused = "herald_notifications_refused_total"
    package static let notificationsStored = "herald_notifications_stored_total"
    /// Stored notifications that a later one of the same commit replaced: in the journal, never written as rows.
    package static let notificationsReplacedUnwritten = "herald_notifications_replaced_unwritten_total"
    package static let notificationsNotStored = "herald_notifications_not_stored_total"
    package static let deliveries = "herald_deliveries_total"
    package static let notificationsWaiting = "herald_notifications_waiting"
    package static let notificationBytes = "herald_notification_memory_bytes"
    package static let devicesConnected = "herald_devices_connected"
    package static let providerConnections = "herald_provider_connections_total"
    package static let providerConnectionsCutOff = "herald_provider_connections_cut_off_total"
    package static let providerRequests = "herald_provider_requests_total"
    package static let drilledRequests = "herald_drilled_requests_total"
    package static let drillsActive = "herald_drills_active"
    package static let catching = "herald_catching"
    package static let payloadDrillsAllowed = "herald_payload_drills_allowed"
    package static let binaryConnections = "herald_binary_connections_total"
    package static let binaryNotifications = "herald_binary_notifications_total"
    package static let feedbackConnections = "herald_feedback_connections_total"
    package static let feedbackTuples = "herald_feedback_tuples_total"
    package static let deviceConnections = "herald_device_connections_total"
    package static let deviceRefusals = "herald_device_refusals_total"
    package static let deviceQueuesFull = "herald_device_queues_full_total"
    package static let deviceArrivalsRefused = "herald_device_arrivals_refused_total"
    package static let deviceTokensMissing = "herald_device_tokens_missing_total"
    package static let revocationListCurrent = "herald_revocation_list_current"
    package static let revocationListExpiry = "herald_revocation_list_expiry_timestamp_seconds"
    package static let clockJump = "herald_clock_jump_seconds"
    package static let trustReloadFailed = "herald_trust_reload_failed"
    package static let registrationsRefused = "herald_registrations_refused_total"
    package static let deviceTakeovers = "herald_device_takeovers_total"
    package static let broadcastsPublished = "herald_broadcasts_published_total"
    package static let broadcastDeliveries = "herald_broadcast_deliveries_total"
    package static let clusterConfirmations = "herald_cluster_confirmations_total"
    package static let channels = "herald_channels"
    package static let channelSubscriptions = "herald_channel_subscriptions"
    package static let clusterClaims = "herald_cluster_claims"
    package static let clusterRings = "herald_cluster_rings_total"
    package static let clusterPassed = "herald_cluster_passed_on_total"
    package static let clusterTakeovers = "herald_cluster_takeovers_total"
    package static let journalRefusalsDropped = "herald_journal_refusals_dropped_total"
    package static let logLinesDropped = "herald_log_lines_dropped_total"
    package static let providerRequestDuration = "herald_provider_request_duration_seconds"
    package static let deliveryDuration = "herald_delivery_duration_seconds"
    package static let storeCommitDuration = "herald_store_commit_duration_seconds"
    package static let journalLines = "herald_journal_lines_total"
}

/// The metrics of the post office.
struct PostOfficeMetrics: Sendable {
    let received = Counter(label: MetricName.notificationsReceived)
    let refused = Counter(label: MetricName.notificationsRefused)
    let stored = Counter(label: MetricName.notificationsStored)
    let replacedUnwritten = Counter(label: MetricName.notificationsReplacedUnwritten)
    let notStored = Counter(label: MetricName.notificationsNotStored)
    private let waiting = Gauge(label: MetricName.notificationsWaiting)
    private let held = Gauge(label: MetricName.notificationBytes)
    private let connected = Gauge(label: MetricName.devicesConnected)
    private let acknowledged = Counter(label: MetricName.deliveries, dimensions: [("result", "acknowledged")])
    private let refusedByDevice = Counter(label: MetricName.deliveries, dimensions: [("result", "refused")])
    private let written = Counter(label: MetricName.deliveries, dimensions: [("result", "written")])
    private let tooLarge = Counter(label: MetricName.deliveries, dimensions: [("result", "too_large")])
    private let expired = Counter(label: MetricName.deliveries, dimensions: [("result", "expired")])
    private let endsConnection = Counter(label: MetricName.deliveries, dimensions: [("result", "ends_connection")])

    func show(waiting: Int, connected: Int, memory: Int) {
        self.waiting.record(waiting)
        self.connected.record(connected)
        held.record(memory)
    }

    func count(_ result: DeliveryResult) {
        switch result {
        case .acknowledged: acknowledged.increment()
        case .refused: refusedByDevice.increment()
        case .written: written.increment()
        case .tooLarge: tooLarge.increment()
        case .expired: expired.increment()
        case .endsConnection: endsConnection.increment()
        }
    }
}

/// The metrics of a store.
package struct StoreMetrics: Sendable {
    private let commitDuration = Timer(label: MetricName.storeCommitDuration)
    /// The counter of each state's outcome.
    private let lines: [JournalState: Counter]

    package init() {
        var lines: [JournalState: Counter] = [:]
        for (outcome, states) in Dictionary(grouping: JournalState.allCases, by: { JournalOutcome($0) }) {
            let counter = Counter(label: MetricName.journalLines, dimensions: [("outcome", outcome.rawValue)])
            for state in states { lines[state] = counter }
        }
        self.lines = lines
    }

    /// A commit took so long, with its sync, and wrote these lines of the journal.
    package func committed(nanoseconds: Int, _ tally: JournalTally) {
        commitDuration.recordNanoseconds(Int64(nanoseconds))
        tally.forEachState { lines[$0]?.increment(by: $1) }
    }
}
