import Foundation
import GRDBSQLite

/// The layer of ``FaultyDisk`` as SQLite wants it: a virtual file system ("The SQLite OS Interface or VFS") that passes
/// every call on to the real one, except syncs.
///
/// It is made SQLite's default once. Files that are under no faulty disk are opened without it.
enum FaultyLayer {
    static func install() {
        _ = installed
    }

    /// nil if SQLite has no file system of its own to put it on.
    private static let installed: Void? = {
        guard let real = sqlite3_vfs_find(nil) else { return nil }
        let layer = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        layer.initialize(to: real.pointee)
        layer.pointee.pNext = nil
        layer.pointee.zName = UnsafePointer(strdup("faulty"))
        layer.pointee.pAppData = UnsafeMutableRawPointer(real)
        layer.pointee.szOsFile = real.pointee.szOsFile + CInt(FaultyFile.headerSize)
        layer.pointee.xOpen = { layer, name, file, flags, outFlags in
            FaultyFile.open(layer, name, file, flags, outFlags)
        }
        sqlite3_vfs_register(layer, 1)
        return ()
    }()
}

/// An open file: SQLite's own header, then the layer's label, then the real file.
private struct FaultyFile {
    /// The disk and name of an open file.
    final class Label {
        let disk: FaultyDisk
        let name: String

        init(disk: FaultyDisk, name: String) {
            self.disk = disk
            self.name = name
        }
    }

    static let headerSize = 64

    var base: sqlite3_file
    var label: Unmanaged<Label>

    static func open(
        _ layer: UnsafeMutablePointer<sqlite3_vfs>?,
        _ path: UnsafePointer<CChar>?,
        _ file: UnsafeMutablePointer<sqlite3_file>?,
        _ flags: CInt,
        _ outFlags: UnsafeMutablePointer<CInt>?
    ) -> CInt {
        guard let real = layer?.pointee.pAppData?.assumingMemoryBound(to: sqlite3_vfs.self), let file,
            let open = real.pointee.xOpen
        else { return SQLITE_CANTOPEN }
        guard let path, let disk = FaultyDisk.watching(String(cString: path)) else {
            return open(real, path, file, flags, outFlags)
        }
        let behind = behind(file)
        let code = open(real, path, behind, flags, outFlags)
        let label = Label(disk: disk, name: (String(cString: path) as NSString).lastPathComponent)
        FaultyFile.header(file).initialize(to: FaultyFile(base: sqlite3_file(), label: .passRetained(label)))
        // SQLite closes a file that failed to open only if it has methods.
        if behind.pointee.pMethods == nil {
            FaultyFile.header(file).pointee.label.release()
        } else {
            FaultyFile.header(file).pointee.base.pMethods = UnsafePointer(methods)
        }
        return code
    }

    private static func header(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<FaultyFile> {
        UnsafeMutableRawPointer(file).assumingMemoryBound(to: FaultyFile.self)
    }

    private static func behind(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<sqlite3_file> {
        (UnsafeMutableRawPointer(file) + headerSize).assumingMemoryBound(to: sqlite3_file.self)
    }

    private static func label(_ file: UnsafeMutablePointer<sqlite3_file>) -> Label {
        FaultyFile.header(file).pointee.label.takeUnretainedValue()
    }

    /// Hands a call on to the real file.
    private static func pass(
        _ file: UnsafeMutablePointer<sqlite3_file>?,
        _ call: (sqlite3_io_methods, UnsafeMutablePointer<sqlite3_file>) -> CInt?
    ) -> CInt {
        guard let file else { return SQLITE_MISUSE }
        let behind = behind(file)
        return behind.pointee.pMethods.flatMap { call($0.pointee, behind) } ?? SQLITE_MISUSE
    }

    /// SQLite keeps the pointer for ever, and nobody writes to it.
    nonisolated(unsafe) private static let methods: UnsafeMutablePointer<sqlite3_io_methods> = {
        var methods = sqlite3_io_methods()
        methods.iVersion = 2
        setReadsAndWrites(&methods)
        setLocks(&methods)
        let pointer = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        pointer.initialize(to: methods)
        return pointer
    }()

    private static func setReadsAndWrites(_ methods: inout sqlite3_io_methods) {
        methods.xClose = { file in
            let code = FaultyFile.pass(file) { $0.xClose?($1) }
            if let file { FaultyFile.header(file).pointee.label.release() }
            return code
        }
        methods.xRead = { file, to, count, at in FaultyFile.pass(file) { $0.xRead?($1, to, count, at) } }
        methods.xWrite = { file, from, count, at in
            guard let file else { return SQLITE_MISUSE }
            let label = FaultyFile.label(file)
            let bytes = UnsafeRawBufferPointer(start: from, count: Int(count))
            let code = label.disk.write(label.name, bytes, at: Int(at))
            return code == SQLITE_OK ? FaultyFile.pass(file) { $0.xWrite?($1, from, count, at) } : code
        }
        methods.xTruncate = { file, size in
            guard let file else { return SQLITE_MISUSE }
            FaultyFile.label(file).disk.truncate(FaultyFile.label(file).name, to: Int(size))
            return FaultyFile.pass(file) { $0.xTruncate?($1, size) }
        }
        methods.xSync = { file, _ in
            guard let file else { return SQLITE_MISUSE }
            // The real file need not be safe: what a power cut leaves is made from the disk's own copy.
            return FaultyFile.label(file).disk.sync(FaultyFile.label(file).name)
        }
        methods.xFileSize = { file, size in FaultyFile.pass(file) { $0.xFileSize?($1, size) } }
        methods.xFileControl = { file, operation, argument in
            FaultyFile.pass(file) { $0.xFileControl?($1, operation, argument) }
        }
        methods.xSectorSize = { file in FaultyFile.pass(file) { $0.xSectorSize?($1) } }
        methods.xDeviceCharacteristics = { file in FaultyFile.pass(file) { $0.xDeviceCharacteristics?($1) } }
    }

    private static func setLocks(_ methods: inout sqlite3_io_methods) {
        methods.xLock = { file, lock in FaultyFile.pass(file) { $0.xLock?($1, lock) } }
        methods.xUnlock = { file, lock in FaultyFile.pass(file) { $0.xUnlock?($1, lock) } }
        methods.xCheckReservedLock = { file, result in FaultyFile.pass(file) { $0.xCheckReservedLock?($1, result) } }
        methods.xShmMap = { file, region, size, extend, to in
            FaultyFile.pass(file) { $0.xShmMap?($1, region, size, extend, to) }
        }
        methods.xShmLock = { file, offset, count, flags in
            FaultyFile.pass(file) { $0.xShmLock?($1, offset, count, flags) }
        }
        methods.xShmBarrier = { file in
            _ = FaultyFile.pass(file) {
                $0.xShmBarrier?($1)
                return SQLITE_OK
            }
        }
        methods.xShmUnmap = { file, isDeleted in FaultyFile.pass(file) { $0.xShmUnmap?($1, isDeleted) } }
    }
}
