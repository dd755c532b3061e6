/**
 * Sizes as the body limits print them: binary units when the number is a multiple of 1024, decimal ones
 * otherwise, always with one decimal (`250.0KiB`, `5.0MB`); plain bytes below one unit (`512B`).
 */

const UNITS = {
  1024: ['KiB', 'MiB', 'GiB', 'TiB'],
  1000: ['kB', 'MB', 'GB', 'TB'],
} as const

export function formatByteSize(bytes: number): string {
  const base = bytes % 1024 === 0 ? 1024 : 1000
  let size = bytes
  let unit = 'B'
  for (const next of UNITS[base]) {
    if (size < base) break
    size /= base
    unit = next
  }
  return unit === 'B' ? `${bytes}B` : `${size.toFixed(1)}${unit}`
}
