import GRDB
import Logging

/// What the writer does between commits, and at the end.
extension Writer {
    /// Copies the write-ahead log into the file.
    func checkpoint(_ mode: CheckpointPace.Mode) {
        let begin = now
        do {
            let result = try database.checkpoint(mode == .passive ? .passive : .restart)
            schedule.checkpointed((result.walFrameCount, result.checkpointedFrameCount))
        } catch {
            schedule.checkpointed(nil)
            // A reader that does not end in time is no trouble; the next slice comes anyway.
            if let error = error as? DatabaseError, error.resultCode == .SQLITE_BUSY { return }
            failed(Stage(), error)
        }
        surroundings.statistics.checkpointed(in: now - begin)
    }

    /// Leaves a file that needs no log and no check at the next start.
    func finish() {
        surroundings.readers.close()
        if schedule.health != .failed {
            do {
                try transact { try settings.close(database, nextSequence: nextSequence) }
                try database.checkpoint(.truncate)
            } catch {
                surroundings.logger.warning(
                    "the store was not closed cleanly; it will be checked at the next start",
                    metadata: ["error": "\(StoreError(writing: error, path: surroundings.file.path))"]
                )
            }
        }
    }
}
