import HeraldModel
import HeraldTrust
import Testing

struct CivilTimeTests {
    @Test(arguments: [
        (0, "1970-01-01T00:00:00Z"), (1_772_366_400, "2026-03-01T12:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"),
        (4_107_542_399, "2100-02-28T23:59:59Z"), (4_107_542_400, "2100-03-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59Z"), (253_402_300_799, "9999-12-31T23:59:59Z"),
        (-62_135_596_800, "0001-01-01T00:00:00Z"),
    ])
    func `a moment is written as ISO 8601 has it, and read back`(seconds: Int64, text: String) {
        #expect(WallTime(seconds: seconds).isoText == text)
        #expect(WallTime(isoText: text) == WallTime(seconds: seconds))
    }

    @Test func `moments beyond four-digit years are written as the last of these`() {
        #expect(WallTime(milliseconds: .max).isoText == "9999-12-31T23:59:59Z")
        #expect(WallTime(milliseconds: .min).isoText == "0001-01-01T00:00:00Z")
    }

    @Test func `every day of four centuries comes back`() {
        for day in Int64(-135_140)..<10_957 {
            let moment = WallTime(seconds: day * 86_400 + 86_399)
            #expect(WallTime(isoText: moment.isoText) == moment)
        }
    }

    @Test(arguments: [
        "", "2026-03-01", "2026-03-01T12:00:00", "2026-03-01 12:00:00Z", "2026-13-01T12:00:00Z", "2026-00-01T12:00:00Z",
        "2026-02-29T12:00:00Z", "2026-03-01T24:00:00Z", "2026-03-01T12:60:00Z", "2026-03-01T12:00:60Z",
        "2026-03-00T12:00:00Z", "0000-03-01T12:00:00Z", "-026-03-01T12:00:00Z", "2026-03-01T12:00:0xZ",
    ])
    func `what is no date is not read`(text: String) {
        #expect(WallTime(isoText: text) == nil)
    }
}
