import SwiftASN1
import Testing

@testable import HeraldTrust

struct PEMTextTests {
    /// Lines of 64 characters hold 48 bytes each.
    @Test(arguments: [1, 47, 48, 49, 95, 96, 97, 5000])
    func `a text is the one that SwiftASN1 writes, and is read back`(length: Int) throws {
        let der = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let text = PEMText.text("X509 CRL", der: der)
        #expect(text == PEMDocument(type: "X509 CRL", derBytes: der).pemString + "\n")
        #expect(try PEMText.only("X509 CRL", in: Array(text.utf8)) == der)
    }
}
