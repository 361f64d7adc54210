import HeraldModel
import Testing

@testable import HeraldDesktop

@Suite struct BusTests {
    /// The answer of dbus-daemon 1.14 to `Hello`.
    private let whole: [UInt8] =
        [0x6C, 2, 1, 1, 9, 0, 0, 0, 1, 0, 0, 0, 0x3D, 0, 0, 0]
        + [6, 1, 0x73, 0, 4, 0, 0, 0] + Array(":1.0\0\0\0\0".utf8)
        + [5, 1, 0x75, 0, 1, 0, 0, 0]
        + [8, 1, 0x67, 0, 1, 0x73, 0, 0]
        + [7, 1, 0x73, 0, 0x14, 0, 0, 0] + Array("org.freedesktop.DBus\0\0\0\0".utf8)
        + [4, 0, 0, 0] + Array(":1.0\0".utf8)

    @Test func `a message is read as it was written`() throws {
        var message = BusMessage(kind: .call, serial: 7)
        message.path = "/a/b"
        message.interface = "a.b"
        message.member = "C"
        message.destination = "a.b"
        message.replyTo = 3
        message.signature = "su"
        var writer = BusWriter()
        writer.string("Grüße\u{0}!")
        writer.uint32(9)
        message.body = writer.bytes
        let read = try #require(try BusMessage(message.encoded))
        #expect(read == message)
        var reader = read.reader
        #expect(reader.string() == "Grüße!" && reader.uint32() == 9 && reader.uint32() == nil)
        #expect(try BusMessage.length(of: message.encoded, limit: 1000) == message.encoded.count)
    }

    @Test func `a message of the bus is read`() throws {
        let message = try #require(try BusMessage(whole))
        #expect((message.kind, message.replyTo, message.signature) == (.reply, 1, "s"))
        #expect((message.sender, message.destination) == ("org.freedesktop.DBus", ":1.0"))
        var reader = message.reader
        #expect(reader.string() == ":1.0" && reader.string() == nil)
    }

    @Test func `both byte orders are read`() {
        var little = BusReader([1, 2, 3, 4], isBigEndian: false)
        var big = BusReader([1, 2, 3, 4], isBigEndian: true)
        #expect(little.uint32() == 0x0403_0201 && big.uint32() == 0x0102_0304)
    }

    @Test func `a truncated or changed message does not trap`() throws {
        for count in whole.indices {
            _ = try? BusMessage(Array(whole[..<count]))
            var stream = try accepted()
            #expect(try stream.take(whole[..<count]).isEmpty)
            for value: UInt8 in [0, 1, 0x7F, 0xFF] {
                var changed = whole
                changed[count] = value
                if let message = try? BusMessage(changed) {
                    var reader = message.reader
                    _ = (reader.strings(), reader.signature(), reader.string())
                }
                var stream = try accepted()
                _ = try? stream.take(changed)
            }
        }
    }

    private func accepted() throws -> BusStream {
        var stream = BusStream()
        #expect(try stream.take("OK 0123\r\n".utf8) == [.accepted(Array("BEGIN\r\n".utf8))])
        return stream
    }

    @Test func `messages do not depend on the chunks of bytes`() throws {
        let bytes = Array("OK 0123\r\n".utf8) + whole + whole
        for size in [1, 7, bytes.count] {
            var stream = BusStream()
            var events: [BusStream.Event] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                events += try stream.take(bytes[start..<min(start + size, bytes.count)])
            }
            #expect(events.count == 3)
        }
    }

    @Test func `a refusal, and a peer that is not a bus, are errors`() throws {
        var refusing = BusStream()
        #expect(throws: BusError("it refuses this user")) { try refusing.take("REJECTED EXTERNAL\r\n".utf8) }
        var endless = BusStream()
        #expect(throws: BusError.self) { try endless.take([UInt8](repeating: 65, count: 5000)) }
        var foreign = try accepted()
        #expect(throws: BusError.self) { try foreign.take([UInt8](repeating: 65, count: 16)) }
        var huge = try accepted()
        #expect(throws: BusError.self) {
            try huge.take([0x6C, 4, 0, 1, 0xFF, 0xFF, 0xFF, 0x07, 1, 0, 0, 0, 0, 0, 0, 0])
        }
    }

    @Test func `the authentication names the user in hexadecimal digits of its digits`() {
        #expect(BusStream.authentication(user: 1000) == [0] + Array("AUTH EXTERNAL 31303030\r\n".utf8))
    }

    @Test func `only signals of the notification service count`() throws {
        var message = BusMessage(kind: .signal, serial: 1)
        message.interface = NotificationCalls.name
        message.member = "ActionInvoked"
        message.sender = ":1.7"
        message.signature = "us"
        var writer = BusWriter()
        writer.uint32(5)
        writer.string("default")
        message.body = writer.bytes
        #expect(NotificationCalls.signal(message, owner: ":1.7") == .invoked(5, key: "default"))
        #expect(NotificationCalls.signal(message, owner: ":1.8") == nil)
        message.sender = nil
        #expect(NotificationCalls.signal(message, owner: nil) == nil)
    }

    @Test(arguments: [
        ("unix:path=/run/user/1000/bus", SessionBusAddress.path("/run/user/1000/bus")),
        ("unix:path=/tmp/a%20b,guid=1234", .path("/tmp/a b")),
        ("unix:abstract=/tmp/dbus-1,guid=12", .abstract("/tmp/dbus-1")),
        ("tcp:host=localhost;unix:path=/x", .path("/x")), ("autolaunch:", nil), ("unix:", nil), ("unix:path=", nil),
        ("unix:path=%00x", nil), ("unix:path=%zz", nil), (";", nil),
    ])
    func `the address of the bus is read`(text: String, address: SessionBusAddress?) {
        #expect(SessionBusAddress(environment: ["DBUS_SESSION_BUS_ADDRESS": text]) == address)
    }

    @Test func `without an address there is none`() {
        #expect(SessionBusAddress(environment: [:]) == nil)
        #expect(SessionBusAddress(environment: ["XDG_RUNTIME_DIR": "/nowhere"]) == nil)
    }
}
