import HeraldModel
import Testing

@Suite struct WallTimeTextTests {
    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"), (-1, "1969-12-31T23:59:59.999Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
    ])
    func `a moment is written and read back`(milliseconds: Int64, text: String) {
        #expect(WallTime(milliseconds: milliseconds).rfc3339 == text)
        #expect(WallTime(rfc3339: text) == WallTime(milliseconds: milliseconds))
    }

    @Test func `a moment beyond the year 9999 saturates`() {
        #expect(WallTime(milliseconds: .max).rfc3339 == "9999-12-31T23:59:59.999Z")
        #expect(WallTime(milliseconds: .min).rfc3339 == "0000-01-01T00:00:00.000Z")
    }

    @Test(arguments: [
        ("2023-11-14T22:13:20Z", 0), ("2023-11-14t22:13:20.5z", 500), ("2023-11-14T22:13:20.123456789Z", 123),
    ])
    func `a fraction may have one to nine digits or none`(text: String, milliseconds: Int64) {
        #expect(WallTime(rfc3339: text) == WallTime(milliseconds: 1_700_000_000_000 + milliseconds))
    }

    @Test(arguments: [
        "2023-11-15T00:13:20+02:00", "2023-11-14T16:43:20.000-05:30", "2023-11-14T22:13:20+00:00",
        "2023-11-14T22:13:20-00:00", "2023-11-15T22:12:20.000000000+23:59",
    ])
    func `a moment may have any offset`(text: String) {
        #expect(WallTime(rfc3339: text) == WallTime(milliseconds: 1_700_000_000_000))
    }

    @Test(arguments: [
        "", "Z", "2023-11-14", "2023-11-14T22:13:20", "2023-11-14 22:13:20Z", "2023-13-14T22:13:20Z",
        "2023-02-29T00:00:00Z",
        "2023-11-14T24:00:00Z", "2023-11-14T22:60:00Z", "2023-11-14T22:13:60Z", "2023-11-14T22:13:20.Z",
        "2023-11-14T22:13:20.1234567890Z", "2023-11-14T22:13:20,5Z", "2023-11-14T22:13:20+0100",
        "2023-11-14T22:13:20+24:00", "2023-11-14T22:13:20+01:60", "2023-11-14T22:13:20 +01:00",
        "2023-11-14T22:13+01:00", "2023-11-14T22:13:20.+01:00", "2023-11-14T22:13:20Z+01:00",
        "2023-11-14T22:13:20+1:00", "+01:00",
        "-023-11-14T22:13:20Z",
        "2023-11-14T22:13:2٠Z", "2023-00-10T00:00:00Z", "2023-04-31T00:00:00Z", "2023-11-14T22:13:20.xZ",
    ])
    func `what is not a moment is refused`(text: String) {
        #expect(WallTime(rfc3339: text) == nil)
    }
}
