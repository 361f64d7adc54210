/// A metric's name, kind, labels and description: one row of docs/metrics.md.
struct MetricDescription: Sendable {
    let name: String
    let kind: MetricFamily.Kind
    let labels: [String]
    /// One sentence, for `# HELP`.
    let help: String

    init(_ name: String, _ kind: MetricFamily.Kind, labels: [String] = [], _ help: String) {
        self.name = name
        self.kind = kind
        self.labels = labels
        self.help = help
    }
}

/// All metrics of the service, the relay and the provider client; `# HELP` and docs/metrics.md follow from it.
enum MetricCatalog {
    static let all: [MetricDescription] = [
        MetricDescription(
            "herald_activations_total",
            .counter,
            labels: ["operation", "result"],
            "Certificate requests of devices, by operation (enroll, renew) and result (done, refused, limited, failed)."
        ),
        MetricDescription("herald_binary_connections_total", .counter, "Connections to the binary interface."),
        MetricDescription(
            "herald_binary_notifications_total",
            .counter,
            labels: ["status"],
            "Notifications at the binary interface, by status (0 is accepted)."
        ),
        MetricDescription(
            "herald_broadcast_deliveries_total",
            .counter,
            labels: ["result"],
            "Copies of broadcasts, by result (acknowledged, refused, written, replaced, too_large, expired, ends_connection)."
        ),
        MetricDescription(
            "herald_broadcasts_published_total",
            .counter,
            "Broadcasts that providers sent to channels."
        ),
        MetricDescription(
            "herald_build_info",
            .gauge,
            labels: ["version"],
            "1, with the version of Herald as a label."
        ),
        MetricDescription("herald_catching", .gauge, "Whether payloads are caught in memory (0 or 1)."),
        MetricDescription(
            "herald_certificate_expiry_timestamp_seconds",
            .gauge,
            labels: ["certificate"],
            "Time when a certificate expires, in seconds since 1970: that of the server, or of an authority."
        ),
        MetricDescription("herald_channel_subscriptions", .gauge, "Subscriptions of connected devices to channels."),
        MetricDescription("herald_channels", .gauge, "Broadcast channels."),
        MetricDescription(
            "herald_client_connection_failures_total",
            .counter,
            "Failed connects of the provider client."
        ),
        MetricDescription("herald_client_connections_open", .gauge, "Open connections of the provider client."),
        MetricDescription("herald_client_connections_total", .counter, "Connects of the provider client."),
        MetricDescription(
            "herald_client_moves_total",
            .counter,
            "Unprocessed requests that the provider client moved to another connection."
        ),
        MetricDescription(
            "herald_client_notifications_total",
            .counter,
            labels: ["outcome"],
            "Notifications of the provider client, by outcome (accepted, refused, ambiguous, unsent, cancelled)."
        ),
        MetricDescription("herald_client_retries_total", .counter, "Retries of the provider client after a pause."),
        MetricDescription(
            "herald_client_send_duration_seconds",
            .histogram,
            "Time from a send to its outcome in the provider client, in seconds."
        ),
        MetricDescription(
            "herald_client_timeouts_total",
            .counter,
            "Requests of the provider client without an answer in time."
        ),
        MetricDescription(
            "herald_clock_jump_seconds",
            .gauge,
            "Jump of the machine's clock while Herald withholds notifications, in seconds; 0 without one, negative if it was set back."
        ),
        MetricDescription(
            "herald_cluster_claims",
            .gauge,
            "Devices of the whole cluster whose connection a node has claimed, with those of nodes that are gone."
        ),
        MetricDescription(
            "herald_cluster_confirmations_total",
            .counter,
            labels: ["end"],
            "Refusals, and discards of apps that are switched off, that waited for what other nodes know, by end (refused, changed, failed, over_limit)."
        ),
        MetricDescription(
            "herald_cluster_connected",
            .gauge,
            "Whether a NATS server of the cluster is connected (0 or 1)."
        ),
        MetricDescription(
            "herald_cluster_faults",
            .gauge,
            "Faults of the cluster's NATS servers and streams; /health names them."
        ),
        MetricDescription(
            "herald_cluster_follower_lag_seconds",
            .gauge,
            labels: ["stream"],
            "Age of what this node knows of a stream that it follows, in seconds."
        ),
        MetricDescription(
            "herald_cluster_nodes",
            .gauge,
            labels: ["state"],
            "Nodes of the cluster by state, as this node sees them: live, silent, left (herald cluster nodes names them)."
        ),
        MetricDescription(
            "herald_cluster_passed_on_total",
            .counter,
            "Notifications that are never stored and went to the node of their device."
        ),
        MetricDescription(
            "herald_cluster_rings_total",
            .counter,
            labels: ["kind"],
            "Messages to other nodes that a notification was stored for a device there: sent, answered, repeated, given_up."
        ),
        MetricDescription(
            "herald_cluster_server_clock_offset_seconds",
            .gauge,
            labels: ["server"],
            "Time by which the clock of a NATS server is ahead of this machine's, in seconds."
        ),
        MetricDescription(
            "herald_cluster_set_aside_total",
            .counter,
            labels: ["kind"],
            "Records of the cluster's log, and messages between nodes, that no node wrote: record, message."
        ),
        MetricDescription(
            "herald_cluster_streams_without_leader",
            .gauge,
            "Streams of the cluster that have no leader, as this node's NATS server sees them: providers get 503."
        ),
        MetricDescription(
            "herald_cluster_takeovers_total",
            .counter,
            "Connections that ended because their device connected to another node."
        ),
        MetricDescription(
            "herald_cluster_trust_shared",
            .gauge,
            "Whether this node's trust is in common with the other nodes (0 or 1)."
        ),
        MetricDescription(
            "herald_connections_limit",
            .gauge,
            labels: ["listener"],
            "Connections that a listener may have, by listener."
        ),
        MetricDescription(
            "herald_connections_open",
            .gauge,
            labels: ["listener"],
            "Open connections, by listener, with those in their handshake."
        ),
        MetricDescription(
            "herald_connections_refused_total",
            .counter,
            labels: ["listener", "reason"],
            "Connections that ended before their protocol began, by listener and reason."
        ),
        MetricDescription(
            "herald_deliveries_total",
            .counter,
            labels: ["result"],
            "Deliveries to devices, by result (acknowledged, refused, written, too_large, expired, ends_connection)."
        ),
        MetricDescription(
            "herald_delivery_duration_seconds",
            .histogram,
            "Time from acceptance to the device's acknowledgement, in seconds (steps of 1 ms), of notifications that did not wait in the store."
        ),
        MetricDescription(
            "herald_device_arrivals_refused_total",
            .counter,
            "Devices refused because they had waited for their turn: too many arrived at once at a node of a cluster."
        ),
        MetricDescription(
            "herald_device_arrivals_waiting",
            .gauge,
            "Devices that wait for their turn to arrive at a node of a cluster."
        ),
        MetricDescription(
            "herald_device_certificates",
            .gauge,
            labels: ["state"],
            "Devices whose newest certificate ends within 30 days, or within the last quarter of a shorter life (ending), or has ended (ended); counted each hour."
        ),
        MetricDescription("herald_device_connections_total", .counter, "Connections of devices."),
        MetricDescription(
            "herald_device_queues_full_total",
            .counter,
            "Devices disconnected because too many messages waited for them."
        ),
        MetricDescription("herald_device_refusals_total", .counter, "Devices refused after MQTT began."),
        MetricDescription(
            "herald_device_takeovers_total",
            .counter,
            "Connections that a newer connection of the same device replaced."
        ),
        MetricDescription(
            "herald_device_tokens_missing_total",
            .counter,
            "Connections whose device did not present the tokens of its apps in time."
        ),
        MetricDescription("herald_devices_connected", .gauge, "Connected devices."),
        MetricDescription(
            "herald_devices_enrolled",
            .gauge,
            "Enrolled devices that are not revoked; counted each hour."
        ),
        MetricDescription(
            "herald_devices_unseen",
            .gauge,
            labels: ["days"],
            "Enrolled devices that are not connected, and that no node has seen for 1, 7 or 30 days; counted each hour."
        ),
        MetricDescription(
            "herald_drilled_requests_total",
            .counter,
            labels: ["kind"],
            "Requests that a drill affected, by kind."
        ),
        MetricDescription("herald_drills_active", .gauge, "Active drills."),
        MetricDescription("herald_feedback_connections_total", .counter, "Connections to the feedback service."),
        MetricDescription(
            "herald_feedback_tuples_total",
            .counter,
            "Dead tokens that the feedback service reported."
        ),
        MetricDescription(
            "herald_health_warnings",
            .gauge,
            "Faults with which the service goes on; /health names them."
        ),
        MetricDescription(
            "herald_journal_lines_total",
            .counter,
            labels: ["outcome"],
            "Lines of the journal, by outcome (received, delivered, delivered_from_storage, refused_by_device, stored, replaced, discarded, sent_to_subscribers, refused, drilled)."
        ),
        MetricDescription(
            "herald_journal_refusals_dropped_total",
            .counter,
            "Refused requests without a line in the journal: too many, or the disk is full."
        ),
        MetricDescription(
            "herald_log_lines_dropped_total",
            .counter,
            "Log lines dropped: nobody read the log, or the journal refused them."
        ),
        MetricDescription("herald_notification_memory_bytes", .gauge, "Memory of notifications in flight, in bytes."),
        MetricDescription(
            "herald_notification_memory_limit_bytes",
            .gauge,
            "Memory that notifications in flight may have, in bytes (notification-memory)."
        ),
        MetricDescription(
            "herald_notifications_not_stored_total",
            .counter,
            "Notifications that the store failed to write."
        ),
        MetricDescription("herald_notifications_received_total", .counter, "Notifications received from providers."),
        MetricDescription(
            "herald_notifications_refused_total",
            .counter,
            "Received notifications that the post office refused."
        ),
        MetricDescription(
            "herald_notifications_replaced_unwritten_total",
            .counter,
            "Stored notifications that a newer one replaced within the same commit."
        ),
        MetricDescription("herald_notifications_stored_total", .counter, "Notifications stored for a device."),
        MetricDescription("herald_notifications_waiting", .gauge, "Notifications in the store."),
        MetricDescription("herald_payload_drills_allowed", .gauge, "Whether payloads may start drills (0 or 1)."),
        MetricDescription(
            "herald_provider_connections_cut_off_total",
            .counter,
            labels: ["reason"],
            "Connections of providers that Herald closed for exceeding a limit, by reason."
        ),
        MetricDescription(
            "herald_provider_connections_total",
            .counter,
            "Connections of providers to the HTTP/2 API."
        ),
        MetricDescription(
            "herald_provider_request_duration_seconds",
            .histogram,
            "Time from a request's header to its answer, in seconds, of accepted requests at the HTTP/2 API; the delay of a drill does not count."
        ),
        MetricDescription(
            "herald_provider_requests_total",
            .counter,
            labels: ["status", "reason"],
            "Requests at the HTTP/2 API, by status and by reason, which is empty for accepted ones and `drill` for a status that a drill chose."
        ),
        MetricDescription("herald_ready", .gauge, "Whether the service works (0 or 1); /health says what is wrong."),
        MetricDescription(
            "herald_registrations_refused_total",
            .counter,
            "Refused registrations of apps on devices."
        ),
        MetricDescription("herald_relay_breakers_open", .gauge, "Open circuit breakers for dead tokens."),
        MetricDescription("herald_relay_dead_tokens_total", .counter, "Tokens that the relay marked dead."),
        MetricDescription(
            "herald_relay_held_tokens_total",
            .counter,
            "Tokens reported dead while marking was suspended."
        ),
        MetricDescription(
            "herald_relay_oldest_unsent_seconds",
            .gauge,
            "Age of the oldest row that could have been sent, in seconds."
        ),
        MetricDescription(
            "herald_relay_ready",
            .gauge,
            "Whether the relay makes progress (0 or 1); /health says what is wrong."
        ),
        MetricDescription(
            "herald_relay_resolved_total",
            .counter,
            "Rows that may have been sent and were found in a journal."
        ),
        MetricDescription("herald_relay_retries_total", .counter, "Rows put off for another attempt."),
        MetricDescription("herald_relay_rows_deleted_total", .counter, "Final rows deleted by age."),
        MetricDescription("herald_relay_rows_in_flight", .gauge, "Rows in flight in this relay."),
        MetricDescription("herald_relay_rows_queued", .gauge, "Queued rows, with those that are not due yet."),
        MetricDescription("herald_relay_rows_scheduled", .gauge, "Queued rows that are not due yet."),
        MetricDescription(
            "herald_relay_rows_total",
            .counter,
            labels: ["status"],
            "Final rows, by status (sent, refused, expired, failed)."
        ),
        MetricDescription(
            "herald_relay_send_duration_seconds",
            .histogram,
            "Time from sending a row to its answer, in seconds."
        ),
        MetricDescription("herald_relay_store_failures_total", .counter, "Failures of the queue's database."),
        MetricDescription(
            "herald_revocation_list_current",
            .gauge,
            labels: ["peers"],
            "Whether the revocation list of providers or devices is current (0 or 1)."
        ),
        MetricDescription(
            "herald_revocation_list_expiry_timestamp_seconds",
            .gauge,
            labels: ["peers"],
            "Time when the revocation list of providers or devices expires, in seconds since 1970."
        ),
        MetricDescription(
            "herald_store_commit_duration_seconds",
            .histogram,
            "Time of one commit of the store with its sync, in seconds."
        ),
        MetricDescription("herald_store_free_bytes", .gauge, "Free space on the disk of the store, in bytes."),
        MetricDescription("herald_store_size_bytes", .gauge, "Size of the store with its write-ahead log, in bytes."),
        MetricDescription("herald_store_writes_pending", .gauge, "Writes that wait for the disk."),
        MetricDescription(
            "herald_trust_reload_failed",
            .gauge,
            "Whether the last reload of the trust folder failed (0 or 1)."
        ),
        MetricDescription("process_cpu_seconds_total", .counter, "CPU time of the process, in seconds."),
        MetricDescription("process_max_fds", .gauge, "Limit of open file descriptors."),
        MetricDescription("process_open_fds", .gauge, "Open file descriptors."),
        MetricDescription("process_resident_memory_bytes", .gauge, "Resident memory, in bytes."),
        MetricDescription("process_start_time_seconds", .gauge, "Start of the process, in seconds since 1970."),
        MetricDescription("process_virtual_memory_bytes", .gauge, "Virtual memory, in bytes."),
    ]

    static let help = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0.help) })
}
