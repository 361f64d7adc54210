import Logging

/// The nearly full disk: the writer looks at its free space, and closes the gate while there is too little.
extension Writer {
    /// Stops accepting puts before the disk is so full that SQLite fails.
    func checkSpace() {
        let now = now
        if let spaceCheckedAt, now < spaceCheckedAt + store.configuration.freeSpaceInterval { return }
        spaceCheckedAt = now
        guard let free = store.file.freeSpace() else {
            // Unknown: the next probe asks again.
            if store.gate.has(.lowOnSpace) { schedule.became(.lowOnSpace, now: now) }
            return
        }
        let isShort = free < store.configuration.minimumFreeSpace
        let wasShort = store.gate.has(.lowOnSpace)
        if isShort {
            store.gate.set(.lowOnSpace)
            schedule.became(.lowOnSpace, now: now)
        } else {
            store.gate.clear(.lowOnSpace)
            schedule.became(.healthy, now: now)
        }
        guard isShort != wasShort else { return }
        if isShort {
            store.logger.error(
                "the disk of the store is nearly full; refusing notifications until it has free space",
                metadata: ["free": "\(free)", "minimum": "\(store.configuration.minimumFreeSpace)"]
            )
        } else {
            store.logger.notice("the disk of the store has free space again")
        }
    }
}
