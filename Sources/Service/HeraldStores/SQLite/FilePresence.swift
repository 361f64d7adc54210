import CPosix
import Foundation

/// Detects that open files are no longer those at their paths.
struct FilePresence: Sendable {
    private enum Identity: Hashable, Sendable {
        case file(device: UInt64, number: UInt64)
        case missing
        /// The system does not say, for example because of an I/O error.
        case unknown

        init(_ path: String) {
            var status = herald_status()
            if herald_status(path, 1, &status) == 0 {
                self = .file(device: status.device, number: status.number)
            } else {
                self = errno == ENOENT || errno == ENOTDIR ? .missing : .unknown
            }
        }
    }

    private let identities: [(path: String, identity: Identity)]

    /// Records the files that are at these paths now.
    init(of paths: [String]) {
        identities = paths.map { ($0, Identity($0)) }
            .filter { _, identity in if case .file = identity { true } else { false } }
    }

    var isUnchanged: Bool {
        identities.allSatisfy { path, identity in
            let now = Identity(path)
            return now == identity || now == .unknown
        }
    }
}
