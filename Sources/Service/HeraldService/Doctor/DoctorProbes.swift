import CPosix
import Foundation
import HeraldModel
import NIOCore
import NIOPosix

/// Gathers the facts for the checks of `herald doctor`.
enum DoctorProbes {
    /// Syncs of which the median counts.
    private static let syncs = 9

    // MARK: - Ports

    /// Tries to listen on a port.
    static func listen(host: String, port: Int) async -> PortCheck.Attempt {
        do {
            let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .bind(host: host, port: port)
                .get()
            try await channel.close()
            return .free
        } catch let error as IOError {
            switch error.errnoCode {
            case EADDRINUSE: return .taken(by: holder(of: port))
            case EACCES, EPERM: return .denied
            case EADDRNOTAVAIL: return .foreign
            default: return .failed(String(cString: strerror(error.errnoCode)))
            }
        } catch {
            // The host is a name that does not resolve.
            return .foreign
        }
    }

    /// The name and the identifier of the process that listens on a port; nil if this user may not see it.
    private static func holder(of port: Int) -> String? {
        let inodes = ["/proc/net/tcp", "/proc/net/tcp6"].compactMap {
            PortCheck.listener(on: port, in: ProcessFiles.text($0))
        }
        return ProcessFiles.process(holding: Set(inodes.map { "socket:[\($0)]" })).map { process in
            let name = ProcessFiles.text("/proc/\(process)/comm").trimmingCharacters(in: .whitespacesAndNewlines)
            return "\(name) (process \(process))"
        }
    }

    // MARK: - Disk

    /// Measures the disk of a folder.
    static func disk(_ folder: String) -> DiskCheck {
        var check = DiskCheck(path: folder)
        var status = statvfs()
        if statvfs(folder, &status) == 0 {
            let free = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
            check.freeBytes = Int(clamping: free.partialValue)
            check.freeFiles = status.f_files > 0 ? Int(clamping: UInt64(status.f_favail)) : nil
        }
        if let path = realpath(folder, nil) {
            check.kind = DiskCheck.kind(of: String(cString: path), mounts: ProcessFiles.text("/proc/self/mounts"))
            free(path)
        }
        do {
            check.sync = try sync(in: folder)
        } catch {
            check.failure = "\(error)"
        }
        return check
    }

    /// The median time of a sync after a small write, to a file that is removed again.
    private static func sync(in folder: String) throws -> Duration {
        let path = "\(folder)/.doctor-\(getpid())"
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SafeFile.failure("cannot write", path) }
        defer {
            close(descriptor)
            unlink(path)
        }
        let page = [UInt8](repeating: 1, count: 4096)
        var times: [Duration] = []
        for number in 0..<syncs {
            let start = ContinuousClock.now
            let written = page.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(number * 4096)) }
            guard written == page.count, fsync(descriptor) == 0 else { throw SafeFile.failure("cannot write", path) }
            times.append(start.duration(to: .now))
        }
        return times.sorted()[syncs / 2]
    }

    // MARK: - Names

    /// The addresses to which a name resolves on this machine; nil if it does not.
    static func addresses(of name: String) -> [String]? {
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, nil, nil, &found) == 0 else { return nil }
        defer { freeaddrinfo(found) }
        var addresses: [String] = []
        var next = found
        while let entry = next?.pointee {
            var text = [CChar](repeating: 0, count: 64)
            let length = socklen_t(text.count)
            if getnameinfo(entry.ai_addr, entry.ai_addrlen, &text, length, nil, 0, NI_NUMERICHOST) == 0 {
                let address = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                if !addresses.contains(address) { addresses.append(address) }
            }
            next = entry.ai_next
        }
        return addresses.isEmpty ? nil : addresses
    }

    /// The addresses of this machine.
    static func localAddresses() -> Set<String> {
        let devices = (try? System.enumerateDevices()) ?? []
        return Set(devices.compactMap { $0.address?.ipAddress })
    }

    // MARK: - Clock

    /// Whether systemd's time service has set the clock; nil if it does not run.
    static func isClockSynchronized() -> Bool? {
        guard access("/run/systemd/timesync", F_OK) == 0 else { return nil }
        return access("/run/systemd/timesync/synchronized", F_OK) == 0
    }

    // MARK: - Files

    /// The status of the files of a data folder, with what is forbidden to each.
    static func files(of folder: DataFolder, service: UInt32) -> [FileCheck] {
        var checks: [FileCheck] = []
        func add(_ path: String, forbidden: mode_t) {
            var status = herald_status()
            guard herald_status(path, 0, &status) == 0 else { return }
            checks.append(
                FileCheck(
                    path: path,
                    mode: mode_t(status.mode),
                    owner: status.user,
                    service: service,
                    forbidden: forbidden
                )
            )
        }
        add(folder.authorityPath, forbidden: 0o022)
        for part in [folder.trustPath, folder.storePath, folder.auditPath, folder.runPath] {
            add(part, forbidden: 0o077)
            for name in (try? FileManager.default.contentsOfDirectory(atPath: part)) ?? [] {
                add("\(part)/\(name)", forbidden: name.hasSuffix(".crl") || part == folder.runPath ? 0o022 : 0o077)
            }
        }
        return checks
    }

    /// The limit of open files of a process; nil if the system does not say.
    static func descriptorLimit(ofProcess process: Int32) -> Int? {
        let limits = ProcessFiles.text("/proc/\(process)/limits")
        let line = limits.split(separator: "\n").first { $0.hasPrefix("Max open files") }
        return line?.split(separator: " ").dropFirst(3).first.flatMap { Int($0) }
    }
}
