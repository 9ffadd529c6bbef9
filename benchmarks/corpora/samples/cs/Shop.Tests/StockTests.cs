using Xunit;

namespace Shop.Tests;

public class StockTests
{
    private readonly Stock stock = new Stock();

    [Fact]
    public void CountsWhatComesIn()
    {
        stock.Receive("tea", 5);
        Assert.Equal(5, stock.Count("tea"));
        Assert.True(stock.Has("tea"));
    }

    [Fact]
    public void RefusesMoreThanThereIs()
    {
        stock.Receive("tea", 1);
        Assert.Throws<OutOfStock>(() => stock.Take("tea", 2));
        Assert.Equal(1, stock.Count("tea"));
    }

    [Theory]
    [InlineData("tea", 10)]
    [InlineData("milk", 3)]
    [InlineData("bread", 1)]
    [InlineData("salt", 365)]
    public void KnowsHowLongThingsKeep(string name, int days)
    {
        Assert.Equal(days, Stock.Keeps(name));
    }

    [Fact]
    public void ReportsInOrder()
    {
        stock.Receive("b", 1);
        stock.Receive("a", 2);
        Assert.Equal(new[] { "a", "b" }, stock.Names());
        Assert.Equal(3, stock.Total);
    }
}
