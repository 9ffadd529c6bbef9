require 'invoice'

RSpec.describe Invoice do
  let(:invoice) { Invoice.new(number: 7) }

  it 'adds its lines' do
    invoice.add('tea', 250)
    invoice.add('milk', 120)
    expect(invoice.total).to eq(370)
    expect(invoice.lines.size).to eq(2)
  end

  it 'refuses a negative price' do
    expect { invoice.add('tea', -1) }.to raise_error(ArgumentError, /negative/)
    expect(invoice.total).to eq(0)
  end

  it 'knows the tax of a country' do
    [
      ['DE', 19],
      ['AT', 20],
      ['CH', 8],
    ].each do |country, rate|
      expect(Invoice.tax(country)).to eq(rate)
    end
  end

  it 'is paid once the money is there' do
    invoice.add('tea', 250)
    invoice.pay(250)
    expect(invoice.open?).to be(false)
    expect(invoice.state).to eq('paid')
  end
end
