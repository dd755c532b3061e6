/** Colours and sizes of the console. */
import { createTheme } from '@mantine/core'

export const theme = createTheme({
  primaryColor: 'indigo',
  // Darker than usual, so that white text on these colours reaches a contrast of 4.5 in both themes.
  primaryShade: 8,
  autoContrast: true,
  respectReducedMotion: true,
  colors: {
    // Greys with a little blue: a dark theme that is easy on the eyes at three in the morning, and not black.
    dark: [
      '#dfe3ea',
      '#c3c9d4',
      '#a3abb9',
      '#737c8c',
      '#4b5361',
      '#3a424f',
      '#2a303b',
      '#1c2129',
      '#171b22',
      '#111419',
    ],
  },
  defaultRadius: 'sm',
  fontFamily: 'system-ui, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  headings: { fontWeight: '650' },
  components: {
    Tooltip: { defaultProps: { openDelay: 250, multiline: true, maw: 360 } },
    Button: { defaultProps: { fw: 500 } },
  },
})
