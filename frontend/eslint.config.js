import js from "@eslint/js";
import a11y from "eslint-plugin-jsx-a11y";
import hooks from "eslint-plugin-react-hooks";
import { defineConfig, globalIgnores } from "eslint/config";
import ts from "typescript-eslint";

export default defineConfig(
  globalIgnores(["node_modules", "src/api/schema.d.ts"]),
  js.configs.recommended,
  {
    files: ["**/*.{ts,tsx}"],
    extends: [ts.configs.strictTypeChecked, ts.configs.stylisticTypeChecked, hooks.configs["recommended-latest"], a11y.flatConfigs.strict],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/consistent-type-definitions": ["error", "type"],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // `noUncheckedIndexedAccess` asks for it in the inner loops of painters.
      "@typescript-eslint/no-non-null-assertion": "off",
      "jsx-a11y/label-has-associated-control": ["error", { depth: 4 }],
      "jsx-a11y/no-interactive-element-to-noninteractive-role": ["error", { canvas: ["application"] }],
      // A region that scrolls sideways must be reachable by keyboard.
      "jsx-a11y/no-noninteractive-tabindex": ["error", { tags: [], roles: ["region", "tabpanel"], allowExpressionValues: true }],
    },
  },
);
