/** Colours, type and space of the console: body 14/20, tables 13/20, titles 20/28, one weight for emphasis, space in steps of four. */
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
  fontFamily: "'Inter Variable', system-ui, sans-serif",
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.875rem', lg: '1rem', xl: '1.25rem' },
  lineHeights: { xs: '1.334', sm: '1.54', md: '1.43', lg: '1.5', xl: '1.4' },
  spacing: { xs: '0.5rem', sm: '0.75rem', md: '1rem', lg: '1.5rem', xl: '2rem' },
  headings: {
    fontWeight: '600',
    sizes: {
      h3: { fontSize: '1.25rem', lineHeight: '1.75rem' },
      h5: { fontSize: '0.875rem', lineHeight: '1.25rem' },
    },
  },
  components: {
    Tooltip: { defaultProps: { openDelay: 250, multiline: true, maw: 360 } },
    Button: { defaultProps: { fw: 500, size: 'xs' } },
  },
})
