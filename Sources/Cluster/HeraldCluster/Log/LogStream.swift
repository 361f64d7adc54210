/// A stream of the replicated log.
package enum LogStream: Hashable, Sendable {
    /// The cluster's format, its nodes, and counters.
    case meta
    /// Apps and their numbers.
    case apps
    /// Devices, their numbers and sessions.
    case devices(Partition)
    /// Registrations of devices.
    case registrations(Partition)
    /// Stored notifications, claims and barriers.
    case mailbox(Partition)
    case channels
    case broadcasts
    /// The trust that all nodes share, sealed.
    case trust

    /// The name of the stream on the servers.
    package var name: String {
        switch self {
        case .meta: "HERALD_META"
        case .apps: "HERALD_APPS"
        case .devices(let partition): "HERALD_DEV_\(partition.index)"
        case .registrations(let partition): "HERALD_REG_\(partition.index)"
        case .mailbox(let partition): "HERALD_BOX_\(partition.index)"
        case .channels: "HERALD_CHANNELS"
        case .broadcasts: "HERALD_CAST"
        case .trust: "HERALD_TRUST"
        }
    }

    /// The filter of all subjects of the stream.
    package var subjects: LogSubject {
        switch self {
        case .meta: LogSubject("hrld.meta.>")
        case .apps: LogSubject("hrld.app.>")
        case .devices(let partition): LogSubject("hrld.dev.\(partition.index).>")
        case .registrations(let partition): LogSubject("hrld.reg.\(partition.index).>")
        case .mailbox(let partition): LogSubject("hrld.box.\(partition.index).>")
        case .channels: LogSubject("hrld.channel.>")
        case .broadcasts: LogSubject("hrld.cast.>")
        case .trust: LogSubject("hrld.trust.>")
        }
    }

    /// The filters of all records of the stream, without barriers; no two of them match the same subject.
    package var records: [LogSubject] {
        let prefix = subjects.text.dropLast()
        return switch self {
        case .meta: [LogSubject("\(prefix)*"), LogSubject("\(prefix)*.*")]
        case .apps: [LogSubject("\(prefix)*.*")]
        case .trust: [LogSubject("\(prefix)fact.*.*")]
        case .mailbox: [LogSubject("\(prefix)*.c"), LogSubject("\(prefix)*.n.*.*")]
        case .broadcasts: [LogSubject("\(prefix)stored.*"), LogSubject("\(prefix)transient.*")]
        case .devices, .registrations, .channels: [LogSubject("\(prefix)*")]
        }
    }

    /// All streams of a cluster.
    package static func all(of partitions: Partitions) -> [LogStream] {
        [.meta, .apps, .channels, .broadcasts, .trust]
            + partitions.all.flatMap { [.devices($0), .registrations($0), .mailbox($0)] }
    }
}
