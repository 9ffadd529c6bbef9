package web

import kotlin.test.*

class RouterTest {
    private val router = Router()

    @Test
    fun `finds a plain route`() {
        router.get("/users") { "all" }
        assertEquals("all", router.call("/users"))
        assertEquals(1, router.size)
    }

    @Test
    fun takesParameters() {
        router.get("/users/{id}") { it["id"] }
        assertEquals("7", router.call("/users/7"))
        assertNull(router.match("/users/7/x"))
    }

    @Test
    fun refusesTwoOfTheSame() {
        router.get("/a") { "a" }
        assertFailsWith<IllegalStateException> { router.get("/a") { "b" } }
        assertTrue(router.call("/a") == "a")
    }

    @Test
    fun decodes() {
        val cases = listOf(
            Pair("%20", " "),
            Pair("%2F", "/"),
            Pair("%C3%A4", "ä"),
        )
        for ((text, plain) in cases) {
            assertEquals(plain, Router.decode(text))
        }
    }
}
