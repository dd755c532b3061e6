/** The runs at hand, in a corner of every screen. */
export function RunTray() {
  return null
}
