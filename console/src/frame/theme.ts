/** Colours and sizes of the console. */
import { createTheme } from '@mantine/core'

export const theme = createTheme({
  primaryColor: 'indigo',
  // Darker and lighter than usual, so that text on and in these colours reaches a contrast of 4.5 in both themes.
  primaryShade: { light: 8, dark: 4 },
  autoContrast: true,
  defaultRadius: 'sm',
  fontFamily: 'system-ui, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  headings: { fontWeight: '650' },
})
