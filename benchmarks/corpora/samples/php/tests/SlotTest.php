<?php

namespace App\Tests;

use App\Slot;
use PHPUnit\Framework\TestCase;

class SlotTest extends TestCase
{
    public function testTakesAFreeSlot(): void
    {
        $slot = new Slot(3);
        $slot->take('ada');
        $this->assertSame('ada', $slot->owner());
        $this->assertEquals(2, $slot->left());
    }

    public function testRefusesATakenOne(): void
    {
        $slot = new Slot(1);
        $slot->take('ada');
        $this->assertFalse($slot->take('bob'));
        $this->assertSame(['ada'], $slot->owners());
    }

    /** @dataProvider hours */
    public function testFormatsHours(int $minutes, string $text): void
    {
        $this->assertSame($text, Slot::format($minutes));
    }

    public static function hours(): array
    {
        return [
            [0, '00:00'],
            [61, '01:01'],
            [600, '10:00'],
            [1439, '23:59'],
        ];
    }
}
