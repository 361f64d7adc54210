import HeraldMailbox
import HeraldModel
import Logging
import Synchronization

/// Records of channels and broadcasts, own and others', in the order of the log.
extension ClusterChannels {
    /// Applies what the follower of a stream reports.
    func apply(_ entries: [LogEntry], of stream: LogStream) {
        for entry in entries {
            if entry.isSetAside {
                restore(entry)
                continue
            }
            do throws(RecordError) {
                switch stream {
                case .channels: try applyChannel(entry)
                default: try applyBroadcast(entry)
                }
            } catch {
                if case .otherVersion = error { contents.withLock { $0.failure = error } }
                // As in SQLite: one damaged record does not keep the service from all others.
                context.logger.error(
                    "left out a record of the cluster's log: \(error)",
                    metadata: ["subject": "\(entry.subject)"]
                )
            }
        }
    }

    /// Writes a channel again whose record somebody has overwritten.
    private func restore(_ entry: LogEntry) {
        guard let id = entry.subject.channel else { return }
        let known = contents.withLock { $0.channels[id]?.record }
        context.changes.restore(known, over: entry, in: .channels)
    }

    private func applyChannel(_ entry: LogEntry) throws(RecordError) {
        let channel = entry.isTombstone ? nil : try BroadcastChannel(entry.payload)
        contents.withLock { contents in
            if let id = channel?.id ?? entry.subject.channel {
                contents.changed(id, Versioned(channel, sequence: entry.sequence))
            }
            contents.positions[.channels] = entry.sequence
        }
    }

    private func applyBroadcast(_ entry: LogEntry) throws(RecordError) {
        guard !entry.isTombstone else { return }
        let record = try BroadcastRecord(entry.payload)
        let broadcast = record.broadcast.numbered(entry.sequence)
        contents.withLock { contents in
            guard entry.sequence > contents.positions[.broadcasts] ?? 0 else { return }
            contents.positions[.broadcasts] = entry.sequence
            if contents.awaited[broadcast.uniqueID] != nil { contents.awaited[broadcast.uniqueID] = true }
            if broadcast.storedUntil != nil {
                let newest = Newest(broadcast: broadcast, isOwn: record.node == context.own.node)
                if let former = contents.newest.updateValue(newest, forKey: broadcast.channel), former.isOwn {
                    let detail = JournalEvent.Detail.replacement(broadcast.id)
                    context.journal.record([
                        JournalEvent(.replaced, former.broadcast, at: context.clock.now(), detail: detail)
                    ])
                }
            }
            // Last, so that whoever hears of a broadcast finds the line of the one that it replaces.
            contents.sink?.received(broadcast, isDurable: true)
        }
    }
}

extension ClusterChannels.Contents {
    /// All channels in order of creation, with their messages.
    var stored: [StoredChannel] {
        channels.values.sorted { $0.sequence < $1.sequence }.compactMap(\.record).map { channel in
            StoredChannel(channel: channel, newest: newest[channel.id]?.broadcast)
        }
    }

    /// Takes over what the log has of a channel; nothing happens if something newer is known.
    mutating func changed(_ id: ChannelID, _ new: Versioned<BroadcastChannel>) {
        guard new.sequence > max(channels[id]?.sequence ?? 0, positions[.channels] ?? 0) else { return }
        let isKnown = channels[id] != nil
        if let channel = new.record {
            channels[id] = new
            if !isKnown { sink?.created(StoredChannel(channel: channel, newest: newest[id]?.broadcast)) }
        } else {
            channels[id] = nil
            newest[id] = nil
            if isKnown { sink?.deleted(id) }
        }
    }
}
