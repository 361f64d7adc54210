import HeraldModel
import HeraldStores
import HeraldTestSupport
import HeraldTrust
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct CertificateRenewalTests {
    @Test func `the timer and commands renew one certificate once`() async throws {
        let (temporary, clock, notes) = (try TemporaryFolder(), ManualClock(), LogNotes())
        let folder = try DataFolder.open(temporary.path + "/data", mayCreate: true)
        let trust = try await TrustFolder.create(at: folder.path, store: TrustDatabase.open, now: clock.now())
        let renewal = CertificateRenewal(trust, clock: clock, logger: notes.logger)
        let first = try trust.serverCertificate()
        await renewal.check()
        #expect(notes.all.isEmpty)
        clock.set(first.expires)
        await withTaskGroup { group in
            for number in 0..<16 {
                group.addTask { number % 2 == 0 ? await renewal.check() : await renewal.checkNow() }
            }
        }
        #expect(notes.all.count { $0.contains("was renewed") } == 1)
        #expect(try trust.serverCertificate().expires > first.expires)
    }
}
