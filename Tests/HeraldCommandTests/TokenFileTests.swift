import Foundation
import Testing

@testable import HeraldCommand
@testable import HeraldService

/// A token is read from its file, and nothing else is, or is shown.
struct TokenFileTests {
    @Test(arguments: ["c0ffee", "c0ffee\n", "c0ffee\r\n", "\u{FEFF}c0ffee\n", "  c0ffee\n\n"])
    func `one token is read`(_ text: String) throws {
        #expect(try TokenFile.token(in: Array(text.utf8), "run/admin.token") == "c0ffee")
    }

    @Test(arguments: [
        "", "\n", "c0ffee\nde1eted\n", "c0ffee de1eted", "c0ffee\u{0}de1eted", "c0ffeé", "\"c0ffee\"\u{7F}",
        "-----BEGIN PRIVATE KEY-----\nc0ffee\n-----END PRIVATE KEY-----\n", "c0ffee-----BEGIN EC PRIVATE KEY-----",
        String(repeating: "c0ffee", count: 1000), "\u{FEFF}\u{FEFF}c\u{200B}0ffee",
    ])
    func `anything else is refused unseen`(_ text: String) throws {
        do {
            _ = try TokenFile.token(in: Array(text.utf8), "wrong.token")
            Issue.record("accepted")
        } catch let error as CommandError {
            #expect(error.message.hasPrefix("wrong.token is not the file of a token: "))
            #expect(!error.message.contains("c0ffee") && !error.message.contains("ffe"))
        }
    }

    @Test func `bytes that are not text are refused`() {
        #expect(throws: CommandError.self) { try TokenFile.token(in: [0x30, 0x82, 0x01, 0x0A, 0xFF], "key.der") }
    }

    @Test func `a key in place of a path is not shown`() throws {
        do {
            _ = try SafeFile.read("-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----")
            Issue.record("read")
        } catch let error as CommandError {
            #expect(!error.message.contains("MIGH") && error.message.contains("where the path of its file belongs"))
        }
    }
}
