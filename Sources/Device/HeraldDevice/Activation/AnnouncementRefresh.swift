import HeraldIdentity
import HeraldModel

extension DeviceFolder {
    /// Asks the service for its newest announcement, and takes it.
    ///
    /// It asks on connections that are not verified, since the signature of the announcement is: so a device that was away
    /// while the service got another certificate finds back.
    /// - Returns: The announcement; nil if no address has a newer one.
    /// - Throws: ``EnrollmentError/Code/folder``, `CancellationError`.
    func refreshAnnouncement(timeout: Duration) async throws -> Announcement? {
        for address in try service().addresses {
            do {
                let client = try EnrollmentClient(address.enrollment, authorities: nil, timeout: timeout)
                guard let text = try await client.description().announcement else { continue }
                if let newer = try take(text) { return newer }
            } catch let error as EnrollmentError where error.code != .folder {
                continue
            }
        }
        return nil
    }
}
