/** In a demo: what to try first. */
export function DemoBanner() {
  return null
}
