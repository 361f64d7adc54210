import CVersion
import HeraldModel
import HeraldService

extension Version {
    /// The number, with the commit and its date if `make` built this binary: `herald 0.9.0 (3f605882a643, 2026-11-23)`.
    static let description = "herald \(number) (\(String(cString: herald_commit())))"
}
