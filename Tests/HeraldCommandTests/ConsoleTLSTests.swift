import ArgumentParser
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct ConsoleTLSTests {
    private func configuration(_ host: String, _ options: String...) throws -> ServerConfiguration {
        try Serve.parse(["--console-host", host] + options).configuration(environment: [:])
    }

    @Test(arguments: ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
    func `on loopback the console is plain HTTP unless the setting says otherwise`(host: String) throws {
        #expect(try !configuration(host).isConsoleOverTLS)
        #expect(try !configuration(host).isConsoleExposed)
        #expect(try configuration(host, "--console-tls", "on").isConsoleOverTLS)
    }

    @Test(arguments: ["0.0.0.0", "::", "10.0.0.5", "192.0.2.7", "::ffff:127.0.0.1", "push.example.com", "1270.0.0.1"])
    func `where others may reach it the console speaks TLS unless the setting says otherwise`(host: String) throws {
        #expect(try configuration(host).isConsoleOverTLS)
        #expect(try !configuration(host).isConsoleExposed)
        let plain = try configuration(host, "--console-tls", "off")
        #expect(!plain.isConsoleOverTLS && plain.isConsoleExposed)
        #expect(try !configuration(host, "--console-tls", "off", "--console-mode", "off").isConsoleExposed)
    }

    @Test func `the certificate needs the console's address unless that is every address`() throws {
        #expect(try configuration("10.0.0.5").consoleName == "10.0.0.5")
        #expect(try configuration("0.0.0.0").consoleName == nil)
        #expect(try configuration("127.0.0.1").consoleName == nil)
    }

    @Test func `another choice is refused with the choices`() throws {
        let error = try #require(throws: CommandError.self) { try configuration("::1", "--console-tls", "yes") }
        #expect(error.message.contains("console-tls") && error.message.contains("auto or on or off"))
    }
}
