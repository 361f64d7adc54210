import Foundation
import GRDB
import HeraldMailbox
import HeraldModel
import Logging

/// What the writer does when it cannot write.
extension Writer {
    /// A commit failed: nothing of it is kept, except what nobody waits for.
    func failed(_ stage: Stage, _ error: any Error) {
        let error = StoreError(writing: error, path: surroundings.file.path)
        became(error)
        refuse(first: stage.count, except: stage.answered, error)
    }

    /// Tells all who wait that nothing can be written.
    func refuse() {
        take()
        refuse(first: orders.count, except: [], trouble ?? .closed)
    }

    /// Answers the first orders with a failure, and keeps those of them that nobody waits for, and the lines about what
    /// came; after a failure that is final it keeps nothing.
    private func refuse(first count: Int, except answered: Set<Int>, _ error: StoreError) {
        var kept: [WriteOrder] = []
        var letters: [Letter] = []
        var bytes = 0
        for (place, order) in orders.prefix(count).enumerated() {
            bytes += order.payloadBytes
            if order.isUrgent { urgent -= 1 }
            switch order {
            case .put(let letter, _, _, let isNew):
                letters.append(letter)
                guard isNew, schedule.health != .failed else { break }
                let notification = letter.notification
                kept.append(.record(JournalEvent(.received, notification, at: notification.received), nil))
            case .job(let job): if !answered.contains(place) { job.fail(error) }
            case .record(_, let receipt?): receipt.settle(.refused(.serviceUnavailable))
            case .record(_, nil), .remove: if schedule.health != .failed { kept.append(order) }
            }
        }
        if !letters.isEmpty { surroundings.reporter.current?.failed(letters) }
        let finished = count - kept.count
        orders.replaceSubrange(0..<count, with: kept)
        surroundings.queue.finished(count: finished, bytes: bytes)
        dropOldLines()
    }

    /// Memory is finite: while nothing can be written, the oldest journal lines are lost.
    ///
    /// Removals stay, since what does not die would be delivered again; so do lines that somebody waits for.
    private func dropOldLines() {
        var surplus = orders.count - surroundings.configuration.retainedLines
        guard surplus > 0 else { return }
        let before = orders.count
        orders.removeAll { order in
            guard surplus > 0, case .record(_, nil) = order else { return false }
            surplus -= 1
            return true
        }
        surroundings.queue.finished(count: before - orders.count, bytes: 0)
        surroundings.logger.error(
            "the store cannot be written; journal lines are lost",
            metadata: ["orders": "\(before - orders.count)"]
        )
    }

    /// The store can no longer write, for now or for good.
    private func became(_ error: StoreError) {
        let isNews = trouble == nil
        trouble = error
        guard error.isFinal else {
            surroundings.gate.set(.stalled)
            schedule.became(.stalled, now: now)
            if isNews {
                surroundings.logger.error(
                    "the store cannot be written; refusing notifications until it can",
                    metadata: ["error": "\(error)"]
                )
            }
            return
        }
        surroundings.gate.set(.failed)
        schedule.became(.failed, now: now)
        surroundings.logger.critical("the store has failed", metadata: ["error": "\(error)"])
        surroundings.onFatal(error)
    }

    /// Finds out whether the disk can be written, and has room.
    func probe() {
        take()
        dropOldLines()
        guard trouble != nil else {
            spaceCheckedAt = nil
            checkSpace()
            return
        }
        do {
            try copyLog()
            try transact { try settings.probe(database) }
        } catch {
            became(StoreError(writing: error, path: surroundings.file.path))
            return
        }
        schedule.probed(pagesInLog: log.pages)
        trouble = nil
        surroundings.gate.clear(.stalled)
        surroundings.logger.notice("the store can be written again")
        schedule.became(.well, now: now)
        spaceCheckedAt = nil
        checkSpace()
    }

    /// On a full disk the log cannot grow; copied into the file, if that has free pages, it starts over and has room for
    /// removals, which make more.
    private func copyLog() throws {
        do {
            let result = try database.checkpoint(.passive)
            schedule.checkpointed((result.walFrameCount, result.checkpointedFrameCount))
        } catch {
            if StoreError(writing: error, path: surroundings.file.path).isFinal { throw error }
        }
    }

    /// Takes no more before the disk is so full that SQLite fails.
    func checkSpace() {
        let now = now
        if let spaceCheckedAt, now < spaceCheckedAt + surroundings.configuration.freeSpaceInterval { return }
        spaceCheckedAt = now
        guard let free = surroundings.file.freeSpace() else { return }
        let isShort = free < surroundings.configuration.freeSpaceMark
        let wasShort = surroundings.gate.has(.lowOnSpace)
        if isShort {
            surroundings.gate.set(.lowOnSpace)
            schedule.became(.lowOnSpace, now: now)
        } else {
            surroundings.gate.clear(.lowOnSpace)
            schedule.became(.well, now: now)
        }
        guard isShort != wasShort else { return }
        if isShort {
            surroundings.logger.error(
                "the disk of the store is nearly full; refusing notifications until there is room",
                metadata: ["free": "\(free)", "mark": "\(surroundings.configuration.freeSpaceMark)"]
            )
        } else {
            surroundings.logger.notice("the disk of the store has room again")
        }
    }
}

extension Writer.Surroundings {
    /// There is no writer: takes no more orders, and answers those that were left.
    func refuseAll(_ error: StoreError) {
        queue.close()
        var orders: [WriteOrder] = []
        _ = queue.take(into: &orders)
        var letters: [Letter] = []
        for order in orders {
            switch order {
            case .put(let letter, _, _, _): letters.append(letter)
            case .job(let job): job.fail(error)
            case .record(_, let receipt): receipt?.settle(.refused(.serviceUnavailable))
            case .remove: break
            }
        }
        if !letters.isEmpty { reporter.current?.failed(letters) }
        readers.close()
    }
}
