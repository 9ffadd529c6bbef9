defmodule BasketTest do
  use ExUnit.Case, async: true

  test "adds items" do
    basket = Basket.add(Basket.new(), "tea", 2)
    assert Basket.count(basket) == 2
    assert Basket.names(basket) == ["tea"]
  end

  test "refuses negative amounts" do
    assert_raise ArgumentError, "negative", fn -> Basket.add(Basket.new(), "tea", -1) end
    refute Basket.full?(Basket.new())
  end

  describe "coupons" do
    test "have rates" do
      for {code, rate} <- [
            {"TEN", 10},
            {"HALF", 50},
            {"FREE", 100}
          ] do
        assert Basket.rate(code) == rate
      end
    end

    test "that are unknown give nothing" do
      assert Basket.rate("NOPE") == 0
      assert {:error, :unknown} = Basket.redeem("NOPE")
    end
  end
end
