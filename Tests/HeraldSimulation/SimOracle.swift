import HeraldCluster
import HeraldMailbox
import HeraldModel
import NIOCore

/// Judges a finished history of a simulated cluster.
struct SimOracle {
    let cluster: SimCluster
    private let posts: [SimPost]

    init(_ cluster: SimCluster) {
        self.cluster = cluster
        posts = cluster.posts
    }

    /// One record of a slot's subject.
    private struct Record {
        let sequence: UInt64
        /// nil for a tombstone.
        let post: Int?
    }

    func violations() -> [String] {
        var found: [String] = []
        for (number, post) in posts.enumerated() {
            if post.answers > 1 { found.append("\(number) was answered \(post.answers) times") }
            if post.answers == 0, post.node.isAlive { found.append("\(number) was never answered") }
            // Every token in the test was handed out before, so only a newer registration may end it.
            if post.answer == .refused, post.slot.generation == post.generationAtAnswer {
                found.append("\(number) was refused although its token is good")
            }
        }
        found += acceptedDead()
        for device in cluster.devices {
            if !device.isConnected { found.append("device \(device.number.value) cannot connect") }
            for (app, generation) in device.generations.enumerated() where device.begun[app] == generation {
                found += check(RegisteredSlot(device.slot(app), generation: generation), of: device)
            }
        }
        return found
    }

    private func check(_ slot: RegisteredSlot, of device: SimDevice) -> [String] {
        var found: [String] = []
        let records = records(slot)
        let shown = device.shown[slot] ?? []
        for (number, post) in posts.enumerated() where post.slot == slot && post.answer == .accepted {
            guard let storedUntil = post.storedUntil, !shown.contains(UInt64(number)) else { continue }
            // A clock may be a second ahead.
            let mayHaveExpired = storedUntil <= cluster.world.wallTime + .seconds(1)
            guard let index = records.firstIndex(where: { $0.post == number }) else {
                // Another one took its place before either was sent, unless a connected device waited for it.
                let isKept = cluster.world.kept.contains(UInt64(number))
                let newer =
                    !isKept && records.contains { record in record.post.map { mayFollow(posts[$0], post) } ?? false }
                if !newer { found.append("\(number) was accepted and is nowhere") }
                continue
            }
            guard index + 1 < records.count else {
                if !mayHaveExpired, !mayBeUnheard(records[index].sequence, of: post.node) {
                    found.append("\(number) waits although its device is connected")
                }
                continue
            }
            if let next = records[index + 1].post {
                if !mayFollow(posts[next], post) || posts[next].slot.generation < post.slot.generation {
                    found.append("\(number) was displaced by the older \(next)")
                }
            } else if !mayHaveExpired {
                found.append("\(number) was removed and never shown")
            }
        }
        var newest: (number: Int, begun: Int)?
        for number in shown.map({ Int($0) }) {
            let post = posts[number]
            // One that is never stored may be late on its way from node to node.
            if let newest, let answered = post.answered, post.storedUntil != nil, post.answer != .closed,
                answered < newest.begun
            {
                found.append("\(number) was shown after \(newest.number), which is newer")
            }
            if post.storedUntil != nil, post.begun > newest?.begun ?? 0 { newest = (number, post.begun) }
        }
        return found
    }

    /// Whether the holder of a device may not have heard of a notification: the next connection brings it.
    private func mayBeUnheard(_ sequence: UInt64, of node: SimNode) -> Bool {
        // A node that dies rings no more.
        cluster.world.givenUp.contains(sequence) || !node.isAlive && !cluster.world.rung.contains(sequence)
    }

    /// Whether a notification may take the place of another: it was not answered before that one was begun.
    private func mayFollow(_ next: SimPost, _ post: SimPost) -> Bool {
        guard let answered = next.answered, next.answer != .closed else { return true }
        return answered > post.begun
    }

    private func records(_ slot: RegisteredSlot) -> [Record] {
        let world = cluster.world
        let isMutated = world.mutation == .noGeneration
        let subject = LogSubject.slot(slot.slot, generation: isMutated ? 0 : slot.generation, world.partition)
        return (world.log.stream(.mailbox(world.partition)).records[subject] ?? []).map { record in
            var payload = record.payload
            if isMutated { payload.moveReaderIndex(forwardBy: min(4, payload.readableBytes)) }
            let notification = try? SlotRecord(payload).notification(to: slot.slot)
            return Record(sequence: record.sequence, post: notification.map { Int($0.id.low) })
        }
    }
}
