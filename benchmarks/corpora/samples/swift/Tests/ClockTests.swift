import XCTest

@testable import Clock

final class ClockTests: XCTestCase {
    func testTicks() {
        let clock = Clock(start: 5)
        clock.tick()
        XCTAssertEqual(clock.now, 6)
        XCTAssertTrue(clock.isRunning)
    }

    func testStops() throws {
        let clock = Clock(start: 0)
        try clock.stop()
        XCTAssertFalse(clock.isRunning)
        XCTAssertThrowsError(try clock.stop())
    }

    func testFormats() {
        let cases = [
            (0, "00:00"),
            (59, "00:59"),
            (3599, "59:59"),
        ]
        for (seconds, text) in cases {
            XCTAssertEqual(Clock.format(seconds), text)
        }
    }

    func testParses() throws {
        let clock = try Clock.parse("01:30")
        XCTAssertEqual(clock.now, 90)
        XCTAssertNil(try? Clock.parse("soon"))
    }
}
