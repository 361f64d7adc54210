import HeraldModel
import Logging

/// Deletes expired notifications and the journal's oldest lines.
///
/// Nobody depends on the sweep to be exact: an expired notification is never delivered, swept or not.
struct ExpirySweep {
    let store: any PostOffice.Store
    /// Largest number of notifications that one transaction deletes.
    let step: Int
    let logger: Logger

    func run(at now: WallTime, terms: StorageTerms) async {
        do {
            while try await store.removeExpired(at: now, limit: step) == step {}
            try await store.trim(before: now - terms.journalAge, maximumBytes: terms.journalBytes)
        } catch is CancellationError {
            // The service is stopping.
        } catch {
            logger.warning(
                "could not remove expired notifications; trying again later",
                metadata: ["error": "\(error)"]
            )
        }
    }
}
