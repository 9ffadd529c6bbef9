package bank;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.*;

import org.junit.jupiter.api.*;
import org.junit.jupiter.params.*;
import org.junit.jupiter.params.provider.*;

class LedgerTest {
    private final Ledger ledger = new Ledger("EUR");

    @Test
    void booksBothSides() {
        ledger.book("rent", 70000);
        assertEquals(70000, ledger.debit("rent"));
        assertEquals(-70000, ledger.credit("cash"));
    }

    @Test
    void refusesUnknownAccounts() {
        assertThrows(UnknownAccount.class, () -> ledger.book("nobody", 1));
        assertThat(ledger.entries()).isEmpty();
        assertThat(ledger.balance()).isEqualTo(0);
    }

    @ParameterizedTest
    @CsvSource({
        "rent, 70000",
        "food, 25000",
        "heat, 9000",
        "net, 3000",
    })
    void plans(String account, int amount) {
        assertEquals(amount, Ledger.plan(account));
    }

    @Test
    void closesTheYear() {
        ledger.book("food", 100);
        Report report = ledger.close(2024);
        assertTrue(report.isBalanced());
        assertEquals("2024", report.title());
    }
}
