import GRDBSQLite
import Synchronization

/// A disk that fails when a test says so: a layer between SQLite and its real files (a VFS, "The SQLite OS Interface").
///
/// It is made SQLite's default once, and passes everything through but the files of folders that a test has put under
/// it. What it fails is writes and syncs, the calls on which durability rests.
final class FaultyDisk: Sendable {
    /// Which calls fail.
    enum Kind: Sendable {
        case writes
        case syncs
    }

    private struct Plan {
        var code: CInt = SQLITE_OK
        var kind = Kind.writes
        /// How many calls succeed before one fails.
        var countdown = 0
        /// Whether all later ones fail too.
        var isLasting = false
        var calls: (writes: Int, syncs: Int) = (0, 0)
        var failures = 0
    }

    private static let watched = Mutex<[(folder: String, disk: FaultyDisk)]>([])
    private let plan = Mutex(Plan())

    /// Puts the files of a folder under a new faulty disk, which at first works well.
    init(folder: String) {
        _ = FaultyDisk.installed
        FaultyDisk.watched.withLock { $0.append((folder, self)) }
    }

    func remove() {
        FaultyDisk.watched.withLock { $0.removeAll { $0.disk === self } }
    }

    /// Lets calls of a kind fail with SQLite's code: the one after so many, or that and all later ones.
    func fail(_ kind: Kind, with code: CInt, after count: Int = 0, isLasting: Bool = true) {
        plan.withLock { plan in
            plan.kind = kind
            plan.code = code
            plan.countdown = count
            plan.isLasting = isLasting
            plan.failures = 0
        }
    }

    func heal() {
        plan.withLock { $0.code = SQLITE_OK }
    }

    /// How many calls there were, and how many of them failed since the last order.
    var calls: (writes: Int, syncs: Int, failures: Int) {
        plan.withLock { ($0.calls.writes, $0.calls.syncs, $0.failures) }
    }

    fileprivate func result(of kind: Kind) -> CInt {
        plan.withLock { plan in
            switch kind {
            case .writes: plan.calls.writes += 1
            case .syncs: plan.calls.syncs += 1
            }
            guard plan.code != SQLITE_OK, kind == plan.kind else { return SQLITE_OK }
            guard plan.countdown == 0 else {
                plan.countdown -= 1
                return SQLITE_OK
            }
            let code = plan.code
            plan.failures += 1
            if !plan.isLasting { plan.code = SQLITE_OK }
            return code
        }
    }

    fileprivate static func watching(_ path: String) -> FaultyDisk? {
        watched.withLock { $0.first { path.hasPrefix($0.folder) }?.disk }
    }

    /// Makes the layer SQLite's default; nil if SQLite has no default to put it on.
    private static let installed: Void? = {
        guard let real = sqlite3_vfs_find(nil) else { return nil }
        let layer = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        layer.initialize(to: real.pointee)
        layer.pointee.pNext = nil
        layer.pointee.zName = UnsafePointer(name)
        layer.pointee.pAppData = UnsafeMutableRawPointer(real)
        layer.pointee.szOsFile = real.pointee.szOsFile + CInt(FaultyFile.headerSize)
        layer.pointee.xOpen = { layer, name, file, flags, outFlags in
            FaultyFile.open(layer, name, file, flags, outFlags)
        }
        sqlite3_vfs_register(layer, 1)
        return ()
    }()

    /// SQLite keeps the pointer for ever.
    nonisolated(unsafe) private static let name: UnsafeMutablePointer<CChar> = {
        let text: [CChar] = [0x66, 0x61, 0x75, 0x6C, 0x74, 0x79, 0]
        let name = UnsafeMutablePointer<CChar>.allocate(capacity: text.count)
        name.initialize(from: text, count: text.count)
        return name
    }()
}

/// An open file: SQLite's own header, the disk it is on, and behind them the real file.
private struct FaultyFile {
    static let headerSize = 64

    var base: sqlite3_file
    var disk: Unmanaged<FaultyDisk>

    static func open(
        _ layer: UnsafeMutablePointer<sqlite3_vfs>?,
        _ name: UnsafePointer<CChar>?,
        _ file: UnsafeMutablePointer<sqlite3_file>?,
        _ flags: CInt,
        _ outFlags: UnsafeMutablePointer<CInt>?
    ) -> CInt {
        guard let real = layer?.pointee.pAppData?.assumingMemoryBound(to: sqlite3_vfs.self), let file,
            let open = real.pointee.xOpen
        else { return SQLITE_CANTOPEN }
        guard let disk = name.flatMap({ FaultyDisk.watching(String(cString: $0)) }) else {
            return open(real, name, file, flags, outFlags)
        }
        let behind = FaultyFile.behind(file)
        let code = open(real, name, behind, flags, outFlags)
        let header = UnsafeMutableRawPointer(file).assumingMemoryBound(to: FaultyFile.self)
        header.initialize(to: FaultyFile(base: sqlite3_file(), disk: .passRetained(disk)))
        // SQLite closes a file that failed to open only if it has methods.
        if behind.pointee.pMethods != nil { header.pointee.base.pMethods = UnsafePointer(methods) }
        return code
    }

    static func behind(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<sqlite3_file> {
        (UnsafeMutableRawPointer(file) + headerSize).assumingMemoryBound(to: sqlite3_file.self)
    }

    static func disk(_ file: UnsafeMutablePointer<sqlite3_file>) -> FaultyDisk {
        UnsafeMutableRawPointer(file).assumingMemoryBound(to: FaultyFile.self).pointee.disk.takeUnretainedValue()
    }

    /// Hands a call on to the real file.
    static func pass(
        _ file: UnsafeMutablePointer<sqlite3_file>?,
        _ call: (sqlite3_io_methods, UnsafeMutablePointer<sqlite3_file>) -> CInt?
    ) -> CInt {
        guard let file else { return SQLITE_MISUSE }
        let behind = behind(file)
        return behind.pointee.pMethods.flatMap { call($0.pointee, behind) } ?? SQLITE_MISUSE
    }

    /// SQLite keeps the pointer for ever.
    nonisolated(unsafe) static let methods: UnsafeMutablePointer<sqlite3_io_methods> = {
        var methods = sqlite3_io_methods()
        methods.iVersion = 2
        methods.xClose = { file in
            let code = pass(file) { $0.xClose?($1) }
            if let file {
                UnsafeMutableRawPointer(file).assumingMemoryBound(to: FaultyFile.self).pointee.disk.release()
            }
            return code
        }
        methods.xRead = { file, to, count, at in pass(file) { $0.xRead?($1, to, count, at) } }
        methods.xWrite = { file, from, count, at in
            guard let file else { return SQLITE_MISUSE }
            let code = disk(file).result(of: .writes)
            return code == SQLITE_OK ? pass(file) { $0.xWrite?($1, from, count, at) } : code
        }
        methods.xTruncate = { file, size in pass(file) { $0.xTruncate?($1, size) } }
        methods.xSync = { file, flags in
            guard let file else { return SQLITE_MISUSE }
            let code = disk(file).result(of: .syncs)
            return code == SQLITE_OK ? pass(file) { $0.xSync?($1, flags) } : code
        }
        methods.xFileSize = { file, size in pass(file) { $0.xFileSize?($1, size) } }
        methods.xLock = { file, lock in pass(file) { $0.xLock?($1, lock) } }
        methods.xUnlock = { file, lock in pass(file) { $0.xUnlock?($1, lock) } }
        methods.xCheckReservedLock = { file, result in pass(file) { $0.xCheckReservedLock?($1, result) } }
        methods.xFileControl = { file, operation, argument in
            pass(file) { $0.xFileControl?($1, operation, argument) }
        }
        methods.xSectorSize = { file in pass(file) { $0.xSectorSize?($1) } }
        methods.xDeviceCharacteristics = { file in pass(file) { $0.xDeviceCharacteristics?($1) } }
        methods.xShmMap = { file, region, size, extend, to in
            pass(file) { $0.xShmMap?($1, region, size, extend, to) }
        }
        methods.xShmLock = { file, offset, count, flags in pass(file) { $0.xShmLock?($1, offset, count, flags) } }
        methods.xShmBarrier = { file in
            _ = pass(file) {
                $0.xShmBarrier?($1)
                return SQLITE_OK
            }
        }
        methods.xShmUnmap = { file, isDeleted in pass(file) { $0.xShmUnmap?($1, isDeleted) } }
        let pointer = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        pointer.initialize(to: methods)
        return pointer
    }()
}
