/** A small line of numbers over time, drawn as SVG; its words are for screen readers. */
const WIDTH = 96
const HEIGHT = 24

export function Sparkline({ values, label }: { readonly values: readonly number[]; readonly label: string }) {
  const most = Math.max(1, ...values)
  const step = values.length > 1 ? WIDTH / (values.length - 1) : WIDTH
  const points = values.map((value, place) => {
    const x = (place * step).toFixed(1)
    const y = (HEIGHT - 2 - (value / most) * (HEIGHT - 4)).toFixed(1)
    return `${x},${y}`
  })
  return (
    <svg className="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <line className="sparkline-ground" x1="0" y1={HEIGHT - 1} x2={WIDTH} y2={HEIGHT - 1} />
      <polyline points={points.join(' ')} />
    </svg>
  )
}
