package import HeraldIdentity

/// Decides when a file of the trust folder is read again.
///
/// A file whose content was read, accepted or not, is read again when its stamp changes. A file that could not be read is
/// read again at every reload.
struct FileReload {
    /// The file whose content was read last.
    private var stamp: TrustFile.Stamp?
    /// The failure of the last attempt.
    private var failure: TrustError?

    /// Reads and accepts a file's content if necessary; the file may be missing if it is optional.
    ///
    /// `failures` gets the failure of the last attempt.
    /// - Returns: nil if there is nothing new.
    mutating func read<Content>(
        _ path: String,
        isOptional: Bool = false,
        _ failures: inout ReloadFailures,
        _ read: () throws -> Content
    ) -> Content? {
        let former = failure
        var content: Content?
        var found: TrustFile.Stamp?
        do {
            // The stamp before the content, so that the next reload finds a change in between.
            found = try TrustFile.stamp(path)
            if found == nil, isOptional {
                (stamp, failure) = (nil, nil)
            } else if found == nil || found != stamp || failure?.isAboutContent == false {
                content = try read()
                (stamp, failure) = (found, nil)
            }
        } catch {
            let error = error as? TrustError ?? TrustError(.unexpected, "\(path) cannot be read")
            if error.isAboutContent { stamp = found }
            failure = error
        }
        failures.add(failure, after: former)
        return content
    }
}

/// The failures of a reload.
package struct ReloadFailures: Sendable {
    /// The parts whose last attempt failed; their earlier content stays in effect.
    package private(set) var all: [TrustError] = []
    /// The failures that the reload before did not have in the same words.
    package private(set) var new: [TrustError] = []

    mutating func add(_ failure: TrustError?, after former: TrustError?) {
        guard let failure else { return }
        all.append(failure)
        if failure.message != former?.message { new.append(failure) }
    }
}
