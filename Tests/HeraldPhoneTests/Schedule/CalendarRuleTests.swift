import Foundation
import HeraldModel
import Testing

@testable import HeraldPhone

/// Moments of the calendar, in time zones whose clocks are set ahead and back.
@Suite struct CalendarRuleTests {
    /// The next moments after a time, as RFC 3339 without milliseconds.
    private func next(_ rule: String, after time: String, in zone: String, count: Int = 1) throws -> [String] {
        let rule = try #require(CalendarRule(rule))
        let zone = try #require(TimeZone(identifier: zone))
        var moment = try #require(WallTime(rfc3339: time))
        return try (0..<count).map { _ in
            moment = try #require(rule.next(after: moment, in: zone))
            return moment.rfc3339.replacingOccurrences(of: ":00.000Z", with: "Z")
        }
    }

    @Test(arguments: [
        ("15m", ["2026-03-01T12:15Z", "2026-03-01T12:30Z"]),
        ("day 13:00", ["2026-03-02T12:00Z", "2026-03-03T12:00Z"]),
        ("day 13:01", ["2026-03-01T12:01Z", "2026-03-02T12:01Z"]),
        ("Monday 07:00", ["2026-03-02T06:00Z", "2026-03-09T06:00Z"]),
        ("sunday 13:00", ["2026-03-08T12:00Z", "2026-03-15T12:00Z"]),
        ("month 31 07:00", ["2026-03-31T05:00Z", "2026-05-31T05:00Z"]),
        ("year 12-24 18:00", ["2026-12-24T17:00Z", "2027-12-24T17:00Z"]),
        ("year 02-29 08:00", ["2028-02-29T07:00Z", "2032-02-29T07:00Z"]),
    ])
    func `a rule has its moments in the time zone of the device`(rule: String, moments: [String]) throws {
        // A Sunday, at which the clocks of Berlin show 13:00.
        #expect(try next(rule, after: "2026-03-01T12:00:00Z", in: "Europe/Berlin", count: 2) == moments)
    }

    @Test func `a time that the clock skips is the moment of the change`() throws {
        // On 29 March 2026, 02:00 is followed by 03:00.
        #expect(
            try next("day 02:30", after: "2026-03-28T12:00:00Z", in: "Europe/Berlin", count: 2)
                == ["2026-03-29T01:00Z", "2026-03-30T00:30Z"]
        )
        // In Chile, midnight is followed by 01:00.
        #expect(
            try next("day 00:00", after: "2026-09-05T12:00:00Z", in: "America/Santiago", count: 2)
                == ["2026-09-06T04:00Z", "2026-09-07T03:00Z"]
        )
    }

    @Test func `a time that the clock shows twice counts once`() throws {
        // On 25 October 2026, 03:00 is followed by 02:00.
        #expect(
            try next("day 02:30", after: "2026-10-24T12:00:00Z", in: "Europe/Berlin", count: 2)
                == ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]
        )
        #expect(
            try next("day 02:30", after: "2026-10-25T01:00:00Z", in: "Europe/Berlin") == ["2026-10-26T01:30Z"]
        )
    }

    @Test func `the same rule is another moment in another time zone`() throws {
        let zones = ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati"]
        let moments = try zones.map { try next("day 07:00", after: "2026-07-01T12:00:00Z", in: $0)[0] }
        #expect(moments == ["2026-07-02T07:00Z", "2026-07-02T11:00Z", "2026-07-02T01:30Z", "2026-07-01T17:00Z"])
    }

    @Test func `a moment belongs to the device or to the world`() throws {
        let berlin = try #require(TimeZone(identifier: "Europe/Berlin"))
        let moments = [
            ("2026-12-24T18:00", "2026-12-24T17:00:00.000Z"), ("2026-12-24T18:00:30Z", "2026-12-24T18:00:30.000Z"),
            ("2026-12-24T18:00-05:00", "2026-12-24T23:00:00.000Z"),
            ("2026-12-24T18:00:00.000Z", "2026-12-24T18:00:00.000Z"),
            ("2026-12-24T18:00:30.5", "2026-12-24T17:00:30.500Z"),
            ("2026-12-24T18:00:30.123999999-05:00", "2026-12-24T23:00:30.123Z"),
        ]
        for (text, moment) in moments {
            let read = try #require(CalendarMoment(text))
            #expect(read.moment(in: berlin).rfc3339 == moment && read.description == text)
        }
    }

    @Test func `what is not a rule or a moment is refused`() {
        for text in [
            "", "59s", "0", "day", "day 24:00", "day 7:00", "day 07:00 x", "someday 07:00", "month 0 07:00",
            "month 32 07:00", "month 07:00", "year 02-30 07:00", "year 13-01 07:00", "year 12 07:00", "15 m", "-15m",
        ] { #expect(CalendarRule(text) == nil, "\(text)") }
        for text in [
            "", "2026-12-24", "2026-12-24 18:00", "2026-02-30T18:00", "2026-12-24T18", "2026-12-24T18:00+1", "18:00",
            "2026-13-24T18:00", "2026-12-24T18:00z", "2026-12-24T18:00+25:00", "２０２６-12-24T18:00",
            "2026-12-24T18:00.5Z", "2026-12-24T18:00:00.Z", "2026-12-24T18:00:00.0123456789Z",
            "2026-12-24T18:00:00.5.5Z",
            "2026-12-24T18:00:00.٥Z", "2026-12-24T18:00:00Z.5",
        ] { #expect(CalendarMoment(text) == nil, "\(text)") }
    }
}
